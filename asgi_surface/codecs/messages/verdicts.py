"""What becomes of each construct of a Messages request on the other surfaces. Data only: a test walks the official SDK's types for missing names.

Names with a value in them (`field:service_tier.auto`) stand beside the member's own where the value decides. Knows no code that lifts or lowers.
"""

from __future__ import annotations

from typing import Final

from asgi_surface.verdicts import table

ROWS: Final = table("""
# construct                                       chat, responses, messages, gemini
field:model                                       ee-e
field:messages                                    ee-e
field:system                                      ee-e
field:max_tokens                                  ee-e
field:stream                                      ee-e
field:temperature                                 ee-e
field:top_p                                       ee-e
field:top_k                                       rr-e  no limit to the likeliest tokens
field:stop_sequences                              er-e  Responses takes no stop sequences, OpenAI's Chat four of them
field:tools                                       ee-e
field:tool_choice                                 ee-e
field:tool_choice.disable_parallel_tool_use       ee-r  parallel calls cannot be turned off
field:tool_choice.disable_parallel_tool_use.false ee-a  parallel calls are always allowed
field:metadata                                    aa-a  holds nothing but an end-user id
field:metadata.user_id                            aa-a  an end user's id, for the provider that it was given for
field:service_tier                                rr-r  a tier of another kind
field:service_tier.auto                           aa-a  leaves the tier to the provider
field:service_tier.standard_only                  ee-e
field:speed                                       aa-a  how fast the same answer comes
field:cache_control                               aa-a  a cache mark
field:thinking                                    mm-m  reasoning is asked for in other words
field:thinking.enabled                            mm-e  the least effort that allows it
field:thinking.adaptive                           aa-e  OpenAI's models decide by themselves
field:thinking.adaptive.effort                    mm-m  the effort says how much
field:thinking.disabled                           ee-e
field:thinking.between_tools                      rr-r  where the model reasons cannot be chosen
field:thinking.display                            am-m  reasoning is shown unasked, or as a whole
field:thinking.display.updates                    am-m  summaries in their place
field:thinking.block_binding                      aa-a  how the issuer treats its own seals
field:output_config                               ee-e
field:output_config.effort                        ee-e
field:output_config.format                        ee-e
field:output_config.task_budget                   rr-r  no budget over several requests
field:output_format                               ee-e
field:context_management                          rr-r  no server that edits the history
field:context_management.keep_all                 aa-a  asks that nothing be cleared, as is the case there
field:compaction                                  rr-r  no server that shortens the history
field:container                                   rr-r  no sandbox of Anthropic's there
field:mcp_servers                                 rr-r  the provider would have to call these servers
field:fallbacks                                   rr-r  names other models than the one that was routed
field:fallback_credit_token                       aa-a  redeems what another answer handed out; changes the price only
field:diagnostics                                 aa-a  telemetry of the provider's cache
field:billing_policy                              rr-r  who pays is said at Anthropic
field:inference_geo                               rr-r  the region of another provider cannot be asked for
field:thread                                      rr-r  the history is at another provider
# the SDK sends these three as headers; a client that puts them into the body means the same
field:betas                                       aa-a  a header of Anthropic's own
field:user_profile_id                             aa-a  a header of Anthropic's own
field:workspace_id                                aa-a  a header of Anthropic's own

role:user                                         ee-e
role:assistant                                    ee-e
role:system                                       ee-m  on Gemini between turns as user text after "[system] "
role:system.clear_at                              rr-r  instructions cannot be hidden later
role:system.output_config                         rr-r  settings cannot change within a history

block:text                                        ee-e
block:text.cache_control                          aa-a  a cache mark
block:text.citations                              aa-a  sources of text that stands already
block:image                                       ee-e
block:image.base64                                ee-e
block:image.url                                   ee-e
block:image.file                                  rr-r  the file is at another provider
block:image.cache_control                         aa-a  a cache mark
block:image.transformations                       aa-a  how the provider treats images that are too large
block:document                                    ee-e
block:document.base64                             ee-e
block:document.text                               ee-e
block:document.url                                re-e  files only as data
block:document.file                               rr-r  the file is at another provider
block:document.content                            rr-r  a document made of blocks
block:document.title                              ee-a  no names of files
block:document.context                            rr-r  a document has no notes
block:document.citations                          rr-r  citations cannot be asked for
block:document.cache_control                      aa-a  a cache mark
block:thinking                                    mm-m  its text, and its seal for who minted it
block:thinking.unsealed                           ma-a  reasoning is taken back only with its seal
block:redacted_thinking                           mm-m  its seal for who minted it
block:tool_use                                    ee-e
block:tool_use.cache_control                      aa-a  a cache mark
block:tool_use.caller                             rr-r  no programs that call tools
block:tool_use.toolset_name                       rr-r  a call of a toolset of Anthropic's own
block:tool_result                                 ee-e
block:tool_result.image                           re-e  a tool message holds text only
block:tool_result.document                        re-e  a tool message holds text only
block:tool_result.is_error                        mm-e  said by a fixed prefix
block:tool_result.cache_control                   aa-a  a cache mark
block:tool_result.toolset_name                    rr-r  a result of a toolset of Anthropic's own
block:tool_reference                              mm-m  the tool's name; the tool itself is offered from the start
block:tool_reference.cache_control                aa-a  a cache mark
block:browser_state                               rr-r  a tool of Anthropic's own
block:search_result                               rr-r  no search results with their sources
block:server_tool_use                             rr-r  a tool that the provider runs
block:web_search_tool_result                      rr-r  a tool that the provider runs
block:web_fetch_tool_result                       rr-r  a tool that the provider runs
block:code_execution_tool_result                  rr-r  a tool that the provider runs
block:bash_code_execution_tool_result             rr-r  a tool that the provider runs
block:text_editor_code_execution_tool_result      rr-r  a tool that the provider runs
block:tool_search_tool_result                     rr-r  a tool that the provider runs
block:advisor_tool_result                         rr-r  a tool that the provider runs
block:mcp_tool_use                                rr-r  a tool that the provider runs
block:mcp_tool_result                             rr-r  a tool that the provider runs
block:mcp_tool_listing                            rr-r  a tool that the provider runs
block:container_upload                            rr-r  the file is at another provider
block:compaction                                  rr-r  a history that only its provider can read
block:tool_addition                               rr-r  tools are offered before the conversation only
block:tool_removal                                rr-r  tools are offered before the conversation only
block:fallback                                    aa-a  marks where another model took over; no model sees it

seal:signature                                    mm-m  goes back to who minted it; a foreign one is refused as seal:foreign
seal:redacted                                     mm-m  goes back to who minted it; a foreign one is refused as seal:foreign
seal:encrypted                                    mm-m  goes back to who minted it; a foreign one is refused as seal:foreign
seal:thought                                      mm-m  goes back to who minted it; a foreign one is refused as seal:foreign
seal:text                                         mm-m  reasoning text whose model seals nothing
seal:foreign                                      rr-r  reasoning goes back only to who sealed it

tool:custom                                       ee-e
tool:custom.strict                                ee-a  the schema guides, but is not enforced
tool:custom.cache_control                         aa-a  a cache mark
tool:custom.defer_loading                         aa-a  the tool is offered from the start
tool:custom.eager_input_streaming                 aa-a  how the pieces of a call are cut
tool:custom.input_examples                        rr-r  no examples of calls
tool:custom.allowed_callers                       rr-r  no programs that call tools
tool:bash_20241022                                rr-r  a tool of Anthropic's own
tool:bash_20250124                                rr-r  a tool of Anthropic's own
tool:text_editor_20241022                         rr-r  a tool of Anthropic's own
tool:text_editor_20250124                         rr-r  a tool of Anthropic's own
tool:text_editor_20250429                         rr-r  a tool of Anthropic's own
tool:text_editor_20250728                         rr-r  a tool of Anthropic's own
tool:computer_20241022                            rr-r  a tool of Anthropic's own
tool:computer_20250124                            rr-r  a tool of Anthropic's own
tool:computer_20251124                            rr-r  a tool of Anthropic's own
tool:computer_toolset_20260801                    rr-r  a tool of Anthropic's own
tool:browser_toolset_20260801                     rr-r  a tool of Anthropic's own
tool:memory_20250818                              rr-r  a tool of Anthropic's own
tool:code_execution_20250522                      rr-r  a tool that the provider runs
tool:code_execution_20250825                      rr-r  a tool that the provider runs
tool:code_execution_20260120                      rr-r  a tool that the provider runs
tool:code_execution_20260521                      rr-r  a tool that the provider runs
tool:web_search_20250305                          rr-r  a tool that the provider runs
tool:web_search_20260209                          rr-r  a tool that the provider runs
tool:web_search_20260318                          rr-r  a tool that the provider runs
tool:web_fetch_20250910                           rr-r  a tool that the provider runs
tool:web_fetch_20260209                           rr-r  a tool that the provider runs
tool:web_fetch_20260309                           rr-r  a tool that the provider runs
tool:web_fetch_20260318                           rr-r  a tool that the provider runs
tool:tool_search_tool_bm25                        rr-r  a tool that the provider runs
tool:tool_search_tool_bm25_20251119               rr-r  a tool that the provider runs
tool:tool_search_tool_regex                       rr-r  a tool that the provider runs
tool:tool_search_tool_regex_20251119              rr-r  a tool that the provider runs
tool:advisor_20260301                             rr-r  a tool that the provider runs
tool:mcp_toolset                                  rr-r  a tool that the provider runs

choice:auto                                       ee-e
choice:any                                        ee-e
choice:tool                                       ee-e
choice:none                                       ee-e
""")
"""Every construct of a request."""
