"""What each construct of Chat Completions becomes on the other surfaces, of a client's request and of an upstream's answer. Data only.

A row that is not exact says why. Values that mean nothing (`n: 1`, `store` unsaid) have no construct.
"""

from __future__ import annotations

from typing import Final

from asgi_surface.verdicts import table

ROWS: Final = table("""
# Request members. Letters: chat, responses, messages, gemini.
field:model                               -eee
field:messages                            -eee
field:stream                              -eee
field:stream_options                      -eee
field:stream_options.include_usage        -eee
field:stream_options.include_obfuscation  -eaa  padding of frames: the streams that the gateway writes have none
field:tools                               -eee
field:tool_choice                         -eee
field:functions                           -mmm  said as tools
field:function_call                       -mmm  said as a tool choice
field:max_completion_tokens               -eee
field:max_tokens                          -eee
field:max_tokens.overruled                -aaa  max_completion_tokens says it otherwise
field:temperature                         -eee
field:top_p                               -eee
field:seed                                -rre  the surface has no seed
field:frequency_penalty                   -rre  the surface has no penalties
field:presence_penalty                    -rre  the surface has no penalties
field:stop                                -ree  Responses has no stop sequences
field:n                                   -rre  one answer a request
field:logprobs                            -ere  Messages has no log probabilities
field:top_logprobs                        -ere  Messages has no log probabilities
field:logit_bias                          -rrr  the surface has no token biases
field:parallel_tool_calls                 -eee
field:parallel_tool_calls.false           -eer  Gemini has no such switch
field:response_format                     -eee
field:response_format.json_object         -ere  Messages knows only schemas
field:response_format.json_schema         -eee
field:response_format.json_schema.strict  -eee
field:response_format.json_schema.name    -eaa  a label
field:response_format.json_schema.description  -eaa  the schema describes itself
field:reasoning_effort                    -eee
field:verbosity                           -err  the surface has no verbosity
field:verbosity.medium                    -eaa  the default
field:store                               -arr  no conversion keeps an answer; with Responses the operator does not either
field:store.false                         -eae  Messages keeps no answers
field:metadata                            -eaa  labels of a stored answer
field:service_tier                        -err  the surface has other tiers
field:service_tier.auto                   -aaa  leaves the tier to the provider
field:service_tier.default                -eee
field:service_tier.flex                   -ere  Messages has no such tier to ask for
field:service_tier.priority               -ere  Messages has no such tier to ask for
field:user                                -eaa  an end user's id, for the provider that it was given for
field:safety_identifier                   -eaa  an end user's id, for the provider that it was given for
field:prompt_cache_key                    -eaa  a hint to a cache
field:prompt_cache_retention              -aaa  a hint to a cache
field:prompt_cache_options                -aaa  a hint to a cache
field:prediction                          -aaa  text to compare with: it only shortens the wait
field:modalities                          -rrr  spoken answers are said only here
field:audio                               -rrr  spoken answers are said only here
field:moderation                          -rrr  scores are given only here
field:web_search_options                  -rrr  this search has its own results

# Members of engines: see fields.py.
field:thinking                            -mmm  reasoning on or off
field:enable_thinking                     -mmm  reasoning on or off
field:thinking_budget                     -mmm  a reasoning budget
field:thinking_token_budget               -mmm  a reasoning budget
field:reasoning                           -mmm  reasoning effort or budget
field:include_reasoning                   -mmm  reasoning hidden
field:chat_template_kwargs                -mmm  reasoning on or off
field:top_k                               -ree  Responses has no top_k
field:cache_prompt                        -aaa  a hint to a cache
field:add_generation_prompt               -rrr  the engine's own
field:bad_words                           -rrr  the engine's own
field:continue_final_message              -rrr  the engine's own
field:ebnf                                -rrr  the engine's own
field:grammar                             -rrr  the engine's own
field:ignore_eos                          -rrr  the engine's own
field:include_stop_str_in_output          -rrr  the engine's own
field:json_schema                         -rrr  the engine's own
field:length_penalty                      -rrr  the engine's own
field:min_p                               -rrr  the engine's own
field:min_tokens                          -rrr  the engine's own
field:reasoning_format                    -rrr  the engine's own
field:regex                               -rrr  the engine's own
field:repeat_penalty                      -rrr  the engine's own
field:repetition_penalty                  -rrr  the engine's own
field:separate_reasoning                  -rrr  the engine's own
field:skip_special_tokens                 -rrr  the engine's own
field:stop_token_ids                      -rrr  the engine's own
field:stream_reasoning                    -rrr  the engine's own
field:structured_outputs                  -rrr  the engine's own
field:top_a                               -rrr  the engine's own
field:typical_p                           -rrr  the engine's own

# Messages. `.mid`: an instruction after the conversation has begun.
role:system                               -eee
role:system.mid                           -eem  on Gemini between turns as user text after "[system] "
role:system.name                          -rrr  turns have no names
role:developer                            -emm  said as system
role:developer.mid                        -emm  said as system; on Gemini between turns as user text after "[system] "
role:developer.name                       -rrr  turns have no names
role:user                                 -eee
role:user.name                            -rrr  turns have no names
role:assistant                            -eee
role:assistant.name                       -rrr  turns have no names
role:assistant.audio                      -rrr  spoken answers are said only here
role:assistant.annotations                -aaa  sources of an earlier answer
role:assistant.function_call              -mmm  said as a tool call
role:tool                                 -eee
role:tool.name                            -aae  the call says it
role:function                             -mmm  said as a tool's result

# Content parts, and an assistant message's other contents.
part:text                                 -eee
part:refusal                              -emm  said as text
part:image_url                            -eee
part:image_url.url                        -eee
part:image_url.base64                     -eee
part:image_url.detail                     -eaa  a hint of resolution
part:input_audio                          -rre  the surface takes no sound in a message
part:file                                 -eee
part:file.file_data                       -eee
part:file.filename                        -eea  a label
part:file.file_id                         -err  another provider's store
part:prompt_cache_breakpoint              -aaa  a mark for a cache
part:cache_control                        -aaa  a mark for a cache
part:reasoning_content                    -aaa  reasoning without proof
part:reasoning                            -aaa  reasoning without proof
part:reasoning_details                    -aaa  reasoning without proof
part:tool_calls.function                  -eee
part:tool_calls.custom                    -emm  a function with one string
# Exact for whoever minted it. Any other's is `seal:foreign`, which only lowering can know.
seal:thought                              -eee
seal:none                                 -aam  a stand-in that Google takes for a missing token; the gateway says its own
seal:foreign                              -rrr  minted by another provider

# Tools and choices.
tool:function                             -eee
tool:function.strict                      -eea  the schema guides, but is not enforced
tool:custom                               -emm  a function with one string
tool:custom.grammar                       -emm  described in the function
tool:cache_control                        -aaa  a mark for a cache
choice:auto                               -eee
choice:none                               -eee
choice:required                           -eee
choice:function                           -eee
choice:custom                             -emm  a function with one string
choice:allowed_tools                      -eme  only the allowed tools are offered

# Answers: what a client of the other surface gets.
answer:id                                 -eee
answer:object                             -eee
answer:created                            -eaa  the surface's answer has no time
answer:model                              -eee
answer:choices                            -aae  one answer a request
answer:system_fingerprint                 -aaa  the surface's answer has none
answer:service_tier                       -ema  Messages has other words for it; Gemini has none
answer:metadata                           -aaa  labels of a stored answer
answer:moderation                         -aaa  scores are given only here
answer:prompt_filter_results              -aaa  what Azure's filters say of the prompt is told only here
answer:content_filter_results             -aaa  what Azure's filters say of the answer is told only here
answer:usage                              -eee
answer:index                              -eee
answer:message                            -eee
answer:finish_reason                      -eee
answer:logprobs                           -eae  Messages has no log probabilities
answer:logprobs.refusal                   -aaa  log probabilities of a refusal
answer:logprobs.other                     -aaa  log probabilities in a stream of what is no text
answer:role                               -eee
answer:content                            -eee
answer:refusal                            -emm  said as text
answer:annotations                        -eae  Messages cites only what its own search found
answer:url_citation                       -eae  Messages cites only what its own search found
answer:annotations.other                  -aaa  a source of a newer kind, of no text, or that comes after its text
answer:audio                              -aaa  spoken answers are said only here
answer:function_call                      -mmm  said as a tool call
answer:tool_calls                         -eee
answer:tool_calls.function                -eee
answer:tool_calls.custom                  -emm  said as a function call
answer:reasoning_content                  -eee
answer:reasoning                          -eee
answer:reasoning_details                  -mmm  its text
answer:reasoning_details.data             -mmm  in an envelope, for who minted it
answer:reasoning_details.signature        -mmm  in an envelope, for who minted it
answer:part                               -aaa  a part of a newer kind
answer:unknown                            -aaa  newer than this table
stop:stop                                 -eee
stop:length                               -eee
stop:tool_calls                           -eee
stop:function_call                        -mmm  said as a tool call
stop:content_filter                       -eme  a refusal on Messages
usage:prompt_tokens                       -eee
usage:completion_tokens                   -eee
usage:total_tokens                        -eme  the sum of the others
usage:prompt_tokens_details               -eee
usage:prompt_tokens_details.cached_tokens               -eee
usage:prompt_tokens_details.cache_write_tokens          -eea  Gemini does not count it
usage:prompt_tokens_details.audio_tokens                -aae  the surface does not count it
usage:prompt_tokens_details.image_tokens                -aaa  counted only here
usage:prompt_tokens_details.text_tokens                 -aaa  counted only here
usage:completion_tokens_details           -eee
usage:completion_tokens_details.reasoning_tokens            -eee
usage:completion_tokens_details.accepted_prediction_tokens  -aaa  counted only here
usage:completion_tokens_details.rejected_prediction_tokens  -aaa  counted only here
usage:completion_tokens_details.audio_tokens                -aae  the surface does not count it
usage:completion_tokens_details.text_tokens                 -aaa  counted only here
""")
"""Every construct by name. Letters as `verdicts.table` reads them."""
