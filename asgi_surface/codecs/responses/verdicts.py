"""What becomes of each construct of a Responses request on the other surfaces. Data only: a test walks the official SDK's types for missing names.

Names with a value in them (`field:store.false`) stand beside the member's own where the value decides. Knows no code that lifts or lowers.
"""

from __future__ import annotations

from typing import Final

from asgi_surface.verdicts import table

ROWS: Final = table("""
# construct                                          chat, responses, messages, gemini
field:instructions                                   e-ee
field:stream                                         e-ee
field:stream_options.include_obfuscation             e-aa  padding of frames: the streams that the gateway writes have none
field:max_output_tokens                              e-ee
field:max_tool_calls                                 a-aa  bounds only built-in tools, which are not offered there
field:temperature                                    e-ee
field:top_p                                          e-ee
field:top_logprobs                                   e-re  no log probabilities there
field:metadata                                       e-aa  annotates what the provider stores
field:user                                           e-aa  an end user's id, for the provider that it was given for
field:safety_identifier                              e-aa  an end user's id, for the provider that it was given for
field:prompt_cache_key                               e-aa  a hint to a cache
field:prompt_cache_options                           a-aa  a hint to a cache
field:prompt_cache_options.prewarm                   r-rr  asks for no answer at all
field:prompt_cache_retention                         a-aa  a hint to a cache
field:service_tier                                   e-rr  other tiers of speed and price
field:service_tier.auto                              a-aa  leaves the tier to the provider
field:service_tier.default                           e-ee
field:service_tier.flex                              e-re  Messages has no such tier to ask for
field:service_tier.priority                          e-re  Messages has no such tier to ask for
field:store                                          r-rr  the answer cannot be fetched later
field:store.false                                    a-ae  Chat stores only what it is asked to, Messages nothing
field:truncation                                     r-rr  no server that shortens the history
field:parallel_tool_calls                            e-ee
field:parallel_tool_calls.false                      e-er  parallel calls cannot be turned off
field:previous_response_id                           r-rr  the history is at another provider
field:conversation                                   r-rr  the history is at another provider
field:prompt                                         r-rr  the template is at another provider
field:background                                     r-rr  no answers to poll for
field:background_options                             r-rr  no answers to poll for
field:context_management                             r-rr  no compaction of this kind
field:access_programs                                r-rr  OpenAI's own authorizations
field:moderation                                     r-rr  no moderation in the request
field:image                                          a-aa  how the provider compresses images
field:client_metadata                                a-aa  telemetry of the client
field:include.reasoning.encrypted_content            r-mm  reasoning has no seals there
field:include.message.output_text.logprobs           e-re  no log probabilities there
field:include.message.input_image.image_url          a-aa  repeats what the client sent
field:include.file_search_call.results               a-aa  says more of a built-in tool, which is not offered there
field:include.web_search_call.results                a-aa  says more of a built-in tool, which is not offered there
field:include.web_search_call.action.sources         a-aa  says more of a built-in tool, which is not offered there
field:include.computer_call_output.output.image_url  a-aa  says more of a built-in tool, which is not offered there
field:include.code_interpreter_call.outputs          a-aa  says more of a built-in tool, which is not offered there
field:reasoning.effort                               e-ee
field:reasoning.summary                              a-mm  reasoning is shown unasked, or as a whole
field:reasoning.generate_summary                     a-mm  reasoning is shown unasked, or as a whole
field:reasoning.context                              r-rr  which turns' reasoning the model sees cannot be chosen
field:reasoning.mode                                 r-rr  no other mode of reasoning
field:text.format.text                               e-ee
field:text.format.json_object                        e-re  structured output needs a schema there
field:text.format.json_schema                        e-ee
field:text.format.json_schema.description            e-aa  the schema describes itself
field:text.verbosity                                 e-rr  the length of answers cannot be asked for

role:user                                            e-ee
role:assistant                                       e-ee
role:system                                          e-ee
role:system.mid                                      e-em  on Gemini between turns as user text after "[system] "
role:developer                                       e-mm  said as system
role:developer.mid                                   e-mm  said as system; on Gemini between turns as user text after "[system] "

part:input_text                                      e-ee
part:input_text.prompt_cache_breakpoint              a-aa  a cache mark
part:input_image                                     e-ee
part:input_image.image_url                           e-ee
part:input_image.file_id                             r-rr  the file is at another provider
part:input_image.detail                              e-aa  a hint of resolution
part:input_image.detail.original                     a-aa  a hint of resolution
part:input_image.prompt_cache_breakpoint             a-aa  a cache mark
part:input_file                                      e-ee
part:input_file.file_data                            e-ee
part:input_file.file_url                             r-ee  files only as data
part:input_file.file_id                              e-rr  the file is at another provider
part:input_file.filename                             e-ea  no names of files
part:input_file.detail                               a-aa  a hint of resolution
part:input_file.prompt_cache_breakpoint              a-aa  a cache mark
part:input_audio                                     e-re  no audio there
part:output_text                                     e-ee
part:output_text.annotations                         a-aa  sources of text that the model has already written
part:output_text.logprobs                            a-aa  facts about text that the model has already written
part:text                                            e-ee
part:refusal                                         e-mm  said as text

tool:function                                        e-ee
tool:function.strict                                 e-ea  the schema guides, but is not enforced
tool:function.output_schema                          a-aa  describes results to built-in tools only
tool:function.defer_loading                          a-aa  the tool is offered from the start
tool:function.allowed_callers                        r-rr  no programs that call tools
tool:function.async                                  r-rr  every call is waited for
tool:custom                                          e-mm  a function with one string
tool:custom.format.text                              e-ee
tool:custom.format.grammar                           e-mm  described in the function
tool:custom.defer_loading                            a-aa  the tool is offered from the start
tool:custom.allowed_callers                          r-rr  no programs that call tools
tool:custom.async                                    r-rr  every call is waited for
tool:namespace                                       m-mm  in the names of its tools
tool:namespace.description                           a-aa  its tools describe themselves
tool:apply_patch                                     r-rr  a tool of OpenAI's own
tool:code_interpreter                                r-rr  a tool that the provider runs
tool:computer                                        r-rr  a tool of OpenAI's own
tool:computer_use_preview                            r-rr  a tool of OpenAI's own
tool:file_search                                     r-rr  a tool that the provider runs
tool:image_generation                                r-rr  a tool that the provider runs
tool:local_shell                                     r-rr  a tool of OpenAI's own
tool:mcp                                             r-rr  a tool that the provider runs
tool:programmatic_tool_calling                       r-rr  a tool that the provider runs
tool:shell                                           r-rr  a tool of OpenAI's own
tool:tool_search                                     r-rr  a tool of OpenAI's own
tool:web_search                                      r-rr  a tool that the provider runs
tool:web_search_2025_08_26                           r-rr  a tool that the provider runs
tool:web_search_preview                              r-rr  a tool that the provider runs
tool:web_search_preview_2025_03_11                   r-rr  a tool that the provider runs

choice:auto                                          e-ee
choice:none                                          e-ee
choice:required                                      e-ee
choice:function                                      e-ee
choice:custom                                        e-mm  the function in its place
choice:allowed_tools                                 e-me  only these tools are offered
choice:apply_patch                                   r-rr  a tool of OpenAI's own
choice:code_interpreter                              r-rr  a tool that the provider runs
choice:computer                                      r-rr  a tool of OpenAI's own
choice:computer_use                                  r-rr  a tool of OpenAI's own
choice:computer_use_preview                          r-rr  a tool of OpenAI's own
choice:file_search                                   r-rr  a tool that the provider runs
choice:image_generation                              r-rr  a tool that the provider runs
choice:mcp                                           r-rr  a tool that the provider runs
choice:programmatic_tool_calling                     r-rr  a tool that the provider runs
choice:shell                                         r-rr  a tool of OpenAI's own
choice:web_search_preview                            r-rr  a tool that the provider runs
choice:web_search_preview_2025_03_11                 r-rr  a tool that the provider runs

item:message                                         e-ee
item:message.phase                                   a-aa  a mark for the client's display
item:function_call                                   e-ee
item:function_call.namespace                         m-mm  in the tool's name
item:function_call.caller                            r-rr  no programs that call tools
item:function_call.async                             r-rr  every call is waited for
item:function_call_output                            e-ee
item:function_call_output.image                       r-em  results are text; on Gemini media stand behind all text of the result
item:function_call_output.file                        r-em  results are text; on Gemini media stand behind all text of the result
item:function_call_output.name                       a-aa  the call says it
item:function_call_output.namespace                  a-aa  the call says it
item:function_call_output.caller                     r-rr  no programs that call tools
item:custom_tool_call                                e-mm  a call of the function in its place
item:custom_tool_call.namespace                      m-mm  in the tool's name
item:custom_tool_call.caller                         r-rr  no programs that call tools
item:custom_tool_call.async                          r-rr  every call is waited for
item:custom_tool_call_output                         e-mm  a result of the function in its place
item:custom_tool_call_output.image                    r-em  results are text; on Gemini media stand behind all text of the result
item:custom_tool_call_output.file                     r-em  results are text; on Gemini media stand behind all text of the result
item:custom_tool_call_output.caller                  r-rr  no programs that call tools
item:reasoning                                       e-ee
item:reasoning.summary                               m-mm  the text of the reasoning
item:reasoning.content                               m-mm  the text of the reasoning
item:reasoning.encrypted_content                     m-mm  goes back to who minted it; a foreign one is refused as seal:foreign
item:reasoning.unsealed                              m-aa  reasoning is taken back only with its seal
item:reasoning.empty                                 a-aa  says nothing without what the provider stored
seal:foreign                                         r-rr  reasoning goes back only to who sealed it
item:item_reference                                  r-rr  the item is at another provider
item:additional_tools                                r-rr  tools are offered before the conversation only
item:agent_message                                   r-rr  no messages between agents
item:configuration_update                            r-rr  settings cannot change within a history
item:compaction                                      r-rr  a history that only its provider can read
item:compaction_trigger                              r-rr  no compaction of this kind
item:apply_patch_call                                r-rr  a tool of OpenAI's own
item:apply_patch_call_output                         r-rr  a tool of OpenAI's own
item:code_interpreter_call                           r-rr  a tool that the provider runs
item:computer_call                                   r-rr  a tool of OpenAI's own
item:computer_call_output                            r-rr  a tool of OpenAI's own
item:file_search_call                                r-rr  a tool that the provider runs
item:image_generation_call                           r-rr  a tool that the provider runs
item:local_shell_call                                r-rr  a tool of OpenAI's own
item:local_shell_call_output                         r-rr  a tool of OpenAI's own
item:mcp_approval_request                            r-rr  a tool that the provider runs
item:mcp_approval_response                           r-rr  a tool that the provider runs
item:mcp_call                                        r-rr  a tool that the provider runs
item:mcp_list_tools                                  r-rr  a tool that the provider runs
item:program                                         r-rr  a tool that the provider runs
item:program_output                                  r-rr  a tool that the provider runs
item:shell_call                                      r-rr  a tool of OpenAI's own
item:shell_call_output                               r-rr  a tool of OpenAI's own
item:tool_search_call                                r-rr  a tool of OpenAI's own
item:tool_search_output                              r-rr  a tool of OpenAI's own
item:web_search_call                                 r-rr  a tool that the provider runs
""")
"""Every construct of a request."""
