"""What each construct of a Gemini request or answer becomes on the other surfaces, as data.

Letters stand for chat, responses, messages and gemini. A request's row says what an upstream of that surface gets; an answer's row (`answer:`,
`stop:`, `usage:`) what a client of that surface gets from a Gemini upstream. Knows no bytes.
"""

from __future__ import annotations

from typing import Final

from asgi_surface.verdicts import table

ROWS: Final = table(
    """
    # The body
    field:contents                                                eee-
    field:systemInstruction                                       eee-
    field:systemInstruction.parts                                 rrr-  instructions are text
    field:tools                                                   eee-
    field:toolConfig                                              eee-
    field:toolConfig.functionCallingConfig                        eee-
    field:toolConfig.functionCallingConfig.streamFunctionCallArguments  aaa-  how a stream is cut changes no answer
    field:toolConfig.retrievalConfig                              rrr-  places and languages for Google's own tools
    field:toolConfig.includeServerSideToolInvocations             rrr-  calls of Google's own tools
    field:safetySettings                                          rrr-  no other surface takes thresholds of a filter
    field:safetySettings.off                                      aaa-  there is no filter to switch off
    field:cachedContent                                           rrr-  names a prefix that Google keeps
    field:labels                                                  aaa-  marks for Google's bills
    field:serviceTier                                             eer-  Messages has no flex or priority tier to ask for
    field:serviceTier.standard                                    eee-
    field:store                                                   ear-  a conversion to Responses keeps no answer, Messages never does
    field:store.false                                             aea-  Chat stores only what it is asked to, Messages nothing
    field:continuationToken                                       rrr-  only the server that minted it can read it
    field:model                                                   rrr-  the model stands in the path
    field:modelArmorConfig                                        rrr-  Google's own filter
    field:generationOutputConfig                                  rrr-  where Google is to put generated media

    # generationConfig
    field:generationConfig                                        eee-
    field:generationConfig.temperature                            eee-
    field:generationConfig.topP                                   eee-
    field:generationConfig.topK                                   rre-  OpenAI samples without top_k
    field:generationConfig.maxOutputTokens                        eee-
    field:generationConfig.stopSequences                          ere-  Responses takes no stop sequences, OpenAI's Chat four of them
    field:generationConfig.candidateCount                         err-  only Chat gives several answers
    field:generationConfig.seed                                   err-  only Chat takes a seed
    field:generationConfig.presencePenalty                        err-  only Chat takes penalties
    field:generationConfig.frequencyPenalty                       err-  only Chat takes penalties
    field:generationConfig.responseLogprobs                       eer-  Messages gives no log probabilities
    field:generationConfig.logprobs                               eer-  Messages gives no log probabilities
    field:generationConfig.responseMimeType                       eer-  Messages takes a schema only
    field:generationConfig.responseMimeType.enum                  rrr-  no other surface answers with a bare word of a list
    field:generationConfig.responseSchema                         eee-
    field:generationConfig.responseJsonSchema                     eee-
    field:generationConfig.responseFormat                         rrr-  formats by modality
    field:generationConfig.responseModalities                     rrr-  answers between surfaces are text
    field:generationConfig.thinkingConfig                         eee-
    field:generationConfig.thinkingConfig.includeThoughts         amm-  reasoning is shown unasked, or as a whole
    field:generationConfig.thinkingConfig.thinkingBudget          mme-  the least effort that allows it
    field:generationConfig.thinkingConfig.thinkingBudget.off      eee-
    field:generationConfig.thinkingConfig.thinkingBudget.adaptive  aae-  OpenAI's models decide by themselves
    field:generationConfig.thinkingConfig.thinkingLevel           eee-
    field:generationConfig.thinkingConfig.thinkingLevel.minimal   eem-  low is the least there
    field:generationConfig.mediaResolution                        aaa-  a hint of resolution
    field:generationConfig.speechConfig                           rrr-  answers between surfaces are text
    field:generationConfig.imageConfig                            rrr-  answers between surfaces are text
    field:generationConfig.audioTimestamp                         rrr-  sound is Google's to index
    field:generationConfig.audioTranscriptionConfig               rrr-  sound is Google's to transcribe
    field:generationConfig.translationConfig                      rrr-  translation is a mode of Google's models
    field:generationConfig.enableAffectiveDialog                  rrr-  a mode of Google's models
    field:generationConfig.enableEnhancedCivicAnswers             rrr-  a mode of Google's models
    field:generationConfig.routingConfig                          rrr-  Google's own routing
    field:generationConfig.modelSelectionConfig                   rrr-  Google's own routing

    # Conversation
    role:user                                                     eee-
    role:model                                                    eee-
    role:function                                                 eee-
    part:text                                                     eee-
    part:thought                                                  maa-  reasoning without a token of the upstream's is no part of its history
    part:thoughtSignature                                         eee-
    part:thoughtSignature.none                                    aaa-  a stand-in that Google takes for a missing token
    seal:foreign                                                  rrr-  another upstream minted it
    part:inlineData                                               eee-
    part:inlineData.image                                         eee-
    part:inlineData.document                                      eee-
    part:inlineData.audio                                         err-  only Chat hears
    part:inlineData.video                                         rrr-  no other surface sees film
    part:inlineData.other                                         rrr-  a media type that no other surface takes
    part:inlineData.displayName                                   aaa-  a name for people
    part:fileData                                                 eee-
    part:fileData.image                                           eee-
    part:fileData.document                                        ree-  Chat takes a file's bytes or id
    part:fileData.audio                                           rrr-  no other surface fetches sound
    part:fileData.video                                           rrr-  no other surface sees film
    part:fileData.other                                           rrr-  a media type that no other surface takes
    part:fileData.stored                                          rrr-  a file that Google keeps
    part:fileData.displayName                                     aaa-  a name for people
    part:functionCall                                             eee-
    part:functionCall.partialArgs                                 rrr-  a piece of a stream
    part:functionCall.willContinue                                rrr-  a piece of a stream
    part:functionResponse                                         eee-
    part:functionResponse.error                                   mme-  OpenAI's results have no place for failure
    part:functionResponse.parts                                   ree-  a Chat result is text
    part:functionResponse.parts.audio                             rrr-  results hold no sound
    part:functionResponse.scheduling                              rrr-  a result that comes while the model speaks
    part:functionResponse.willContinue                            rrr-  a result in pieces
    part:executableCode                                           rrr-  Google ran it
    part:codeExecutionResult                                      rrr-  Google ran it
    part:toolCall                                                 rrr-  Google ran it
    part:toolResponse                                             rrr-  Google ran it
    part:videoMetadata                                            rrr-  no other surface sees film
    part:mediaResolution                                          aaa-  a hint of resolution
    part:partMetadata                                             aaa-  the client's own notes
    part:audioTranscription                                       rrr-  only Google hears it so
    part:mediaProcessing                                          rrr-  only Google cuts media
    part:speechMetadata                                           rrr-  only Google hears it so
    part:documentMetadata                                         rrr-  only Google reads it so
    part:spreadsheetMetadata                                      rrr-  only Google reads it so
    part:audioMetadata                                            rrr-  only Google hears it so

    # Tools
    tool:functionDeclarations                                     eee-
    tool:functionDeclarations.parameters                          eee-
    tool:functionDeclarations.parametersJsonSchema                eee-
    tool:functionDeclarations.response                            aaa-  a hint of what the tool gives
    tool:functionDeclarations.responseJsonSchema                  aaa-  a hint of what the tool gives
    tool:functionDeclarations.behavior                            rrr-  a call that does not wait
    tool:googleSearch                                             rrr-  Google runs it
    tool:googleSearchRetrieval                                    rrr-  Google runs it
    tool:googleMaps                                               rrr-  Google runs it
    tool:codeExecution                                            rrr-  Google runs it
    tool:urlContext                                               rrr-  Google runs it
    tool:fileSearch                                               rrr-  Google runs it
    tool:computerUse                                              rrr-  Google defines it
    tool:enterpriseWebSearch                                      rrr-  Google runs it
    tool:retrieval                                                rrr-  Google runs it
    tool:parallelAiSearch                                         rrr-  Google runs it
    tool:exaAiSearch                                              rrr-  Google runs it
    tool:mcpServers                                               rrr-  Google calls them
    choice:AUTO                                                   eee-
    choice:ANY                                                    eee-
    choice:NONE                                                   eee-
    choice:VALIDATED                                              aaa-  arguments come as the model writes them
    choice:allowedFunctionNames                                   eem-  only the allowed tools are offered
    choice:allowedFunctionNames.one                               eee-

    # Answers
    answer:candidates                                             eaa-  only Chat gives several answers
    answer:content                                                eee-
    answer:index                                                  eee-
    answer:finishReason                                           eee-
    answer:finishMessage                                          aaa-  said by the finish itself
    answer:promptFeedback                                         mmm-  a refusal without words
    answer:promptFeedback.blockReasonMessage                      aaa-  said by the finish itself
    answer:promptFeedback.safetyRatings                           aaa-  what the filter thought
    answer:text                                                   eee-
    answer:thought                                                eee-
    answer:thoughtSignature                                       mmm-  in the client's own opaque slot
    answer:functionCall                                           eee-
    answer:part                                                   aaa-  newer than this codec
    answer:unknown                                                aaa-  newer than this codec
    answer:inlineData                                             aaa-  media is no answer text
    answer:fileData                                               aaa-  media is no answer text
    answer:functionResponse                                       aaa-  Google ran it
    answer:executableCode                                         aaa-  Google ran it
    answer:codeExecutionResult                                    aaa-  Google ran it
    answer:toolCall                                               aaa-  Google ran it
    answer:toolResponse                                           aaa-  Google ran it
    answer:videoMetadata                                          aaa-  about media
    answer:mediaResolution                                        aaa-  about media
    answer:partMetadata                                           aaa-  notes
    answer:audioTranscription                                     aaa-  about media
    answer:mediaProcessing                                        aaa-  about media
    answer:speechMetadata                                         aaa-  about media
    answer:documentMetadata                                       aaa-  about media
    answer:spreadsheetMetadata                                    aaa-  about media
    answer:audioMetadata                                          aaa-  about media
    answer:citationMetadata                                       eea-  Messages' citations point into documents
    answer:citationMetadata.citations                             aaa-  licences and dates, and sources without address or text
    answer:groundingMetadata                                      eea-  Messages' citations point into documents
    answer:groundingMetadata.groundingChunks                      aaa-  more than an address, and sources without address or text
    answer:groundingMetadata.groundingSupports                    aaa-  how sure Google is of a source
    answer:groundingMetadata.webSearchQueries                     aaa-  a trace of Google's search
    answer:groundingMetadata.imageSearchQueries                   aaa-  a trace of Google's search
    answer:groundingMetadata.retrievalQueries                     aaa-  a trace of Google's search
    answer:groundingMetadata.searchEntryPoint                     aaa-  Google's own widget
    answer:groundingMetadata.retrievalMetadata                    aaa-  a trace of Google's search
    answer:groundingMetadata.googleMapsWidgetContextToken         aaa-  Google's own widget
    answer:groundingMetadata.sourceFlaggingUris                   aaa-  where to complain of a place
    answer:urlContextMetadata                                     aaa-  a trace of Google's tool
    answer:logprobsResult                                         eea-  Messages gives no log probabilities
    answer:logprobsResult.logProbabilitySum                       aaa-  follows from the tokens
    answer:logprobsResult.tokenId                                 aaa-  a number of Google's own
    answer:logprobsResult.other                                   aaa-  of what is no text
    answer:avgLogprobs                                            aaa-  follows from the tokens
    answer:safetyRatings                                          aaa-  what the filter thought
    answer:tokenCount                                             aaa-  counted in usage
    answer:continuationToken                                      aaa-  only the server that minted it can read it
    answer:createTime                                             eea-  Messages says no time
    answer:modelVersion                                           eee-
    answer:modelStatus                                            aaa-  news of the model
    answer:responseId                                             eee-
    answer:usageMetadata                                          eee-
    stop:STOP                                                     eee-
    stop:MAX_TOKENS                                               eee-
    stop:CONTINUATION                                             mmm-  cut for length
    stop:SAFETY                                                   eee-
    stop:RECITATION                                               mmm-  a filter
    stop:BLOCKLIST                                                mmm-  a filter
    stop:PROHIBITED_CONTENT                                       mmm-  a filter
    stop:SPII                                                     mmm-  a filter
    stop:MODEL_ARMOR                                              mmm-  a filter
    stop:ESCALATION                                               mmm-  a filter
    stop:IMAGE_SAFETY                                             mmm-  a filter
    stop:IMAGE_PROHIBITED_CONTENT                                 mmm-  a filter
    stop:IMAGE_RECITATION                                         mmm-  a filter
    stop:LANGUAGE                                                 mmm-  a reason without a word elsewhere
    stop:OTHER                                                    mmm-  a reason without a word elsewhere
    stop:IMAGE_OTHER                                              mmm-  a reason without a word elsewhere
    stop:FINISH_REASON_UNSPECIFIED                                rrr-  no finish
    stop:MALFORMED_FUNCTION_CALL                                  rrr-  the upstream failed
    stop:UNEXPECTED_TOOL_CALL                                     rrr-  the upstream failed
    stop:TOO_MANY_TOOL_CALLS                                      rrr-  the upstream failed
    stop:MISSING_THOUGHT_SIGNATURE                                rrr-  the upstream failed
    stop:MALFORMED_RESPONSE                                       rrr-  the upstream failed
    stop:NO_IMAGE                                                 rrr-  the upstream failed
    stop:PUP_LIMITED_DISABLED                                     rrr-  the upstream failed
    usage:promptTokenCount                                        eee-
    usage:toolUsePromptTokenCount                                 mmm-  counted as input
    usage:candidatesTokenCount                                    eee-
    usage:thoughtsTokenCount                                      eem-  counted as output
    usage:cachedContentTokenCount                                 eee-
    usage:totalTokenCount                                         eem-  the sum of input and output
    usage:promptTokensDetails                                     aaa-  other modalities than sound
    usage:promptTokensDetails.AUDIO                               eaa-  only Chat counts sound
    usage:candidatesTokensDetails                                 aaa-  other modalities than sound
    usage:candidatesTokensDetails.AUDIO                           eaa-  only Chat counts sound
    usage:cacheTokensDetails                                      aaa-  by modality
    usage:toolUsePromptTokensDetails                              aaa-  by modality
    usage:serviceTier                                             mmm-  the others have another word for it
    usage:serviceTier.other                                       aaa-  a tier that no other surface has
    usage:trafficType                                             aaa-  how Google bills it
    """
)
"""Every construct of generateContent by name."""
