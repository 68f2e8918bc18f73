/** Recorded answers that a client rejects because the vendor departs from the protocol, and those that clients read differently. */

/** By recording: the client that rejects it (`all`), and with what. */
export const departures: Readonly<Record<string, readonly (readonly [client: string, message: RegExp])[]>> = {
  // Relays that pass another one's stream on, with two ids in it.
  'api.avian.io-kimi-k2.5-tools-thinking-cache-read-stream-db6a': [['openai iterated', /the id changes/]],
  // Bodies without choices, or whose choices hold a filter's verdict and no message.
  'azure-openllmetry-testing-content-filter-f514': [['all', /content|Invalid JSON response/]],
  'azure-openllmetry-testing-text-a84b': [['all', /'0'|Invalid JSON response/]],
  // Usage in two members, then again in a frame of its own.
  'groq-kimi-k2-instruct-0905-partools-tools-stream-1258': [['openai iterated', /usage is reported 2 times/]],
  'huggingface-kimi-k2-instruct-0905-groq-partools-tools-stream-4948': [
    ['openai iterated', /usage is reported 2 times/],
  ],
  // Content that is a list of parts.
  'mistral-mistral-small-latest-thinking-87f7': [['ai-sdk', /Invalid JSON response/]],
  'mistral-mistral-small-latest-thinking-long-stream-stream-a4d3': [['ai-sdk', /Type validation failed/]],
  // The usage frame holds an empty choice once more, after its finish_reason.
  'openai-gpt-4.1-mini-toolresult-usage-cost-stream-fcbb': [['openai iterated', /goes on after/]],
  'openrouter-claude-haiku-4.5-thinking-usage-cost-long-stream-stream-6b30': [['openai iterated', /goes on after/]],
  'openrouter-claude-haiku-4.5-toolresult-usage-cost-stream-8c8f': [['openai iterated', /goes on after/]],
  'openrouter-claude-haiku-4.5-tools-thinking-usage-cost-stream-6c4d': [['openai iterated', /goes on after/]],
  'openrouter-glm-5-turbo-partools-tools-thinking-stream-6a24': [['openai iterated', /goes on after/]],
  'openrouter-glm-5-turbo-toolresult-thinking-cache-read-stream-ac0f': [['openai iterated', /goes on after/]],
  'openrouter-kimi-k2.5-partools-tools-thinking-stream-d915': [['openai iterated', /goes on after/]],
  'openrouter-kimi-k2.5-toolresult-thinking-usage-cost-stream-a8d0': [['openai iterated', /goes on after/]],
  'together-meta-llama-3.1-70b-instruct-tu-partools-tools-stream-142e': [['openai iterated', /goes on after/]],
  // No [DONE].
  'perplexity-sonar-web-search-citations-usage-cost-stream-49bb': [['openai iterated', /does not end with/]],
  // An error in the stream.
  'openai-gpt-4o-2024-08-06-midstream-err-stream-69ba': [['all', /Request too large/]],
  // No `event:` lines.
  'openrouter-gpt-4.1-mini-tools-usage-cost-stream-bd6d': [['openai iterated', /is named undefined/]],
  'openrouter-gpt-5-nano-thinking-usage-cost-stream-eeac': [['openai iterated', /is named undefined/]],
  // JSON arrays, which nothing reads as SSE; a last frame without its blank line.
  'google-gemini-2.5-flash-toolresult-jsonarray-stream-8ec6': [['all', /Incomplete JSON segment|no reason to end/]],
  'google-gemini-2.5-flash-tools-thinking-jsonarray-stream-5d3e': [['all', /Incomplete JSON segment|no reason to end/]],
  'google-gemini-2.5-flash-tools-toolresult-jsonarray-stream-77b8': [
    ['all', /Incomplete JSON segment|no reason to end/],
  ],
  'google-safety-stream-fb21': [['all', /Incomplete JSON segment|no reason to end/]],
  // Old models tell STOP in every chunk.
  'vertex-midstream-err-stream-3b7a': [['google iterated', /after the finishReason/]],
  'vertex-safety-citations-stream-517c': [['google iterated', /after the finishReason/]],
  'vertex-text-stream-0539': [['google iterated', /after the finishReason/]],
};

/** By recording: what clients tell differently. */
export const differences: Readonly<Record<string, readonly string[]>> = {
  // The AI SDK mixes all choices of a stream into one text.
  'openai-gpt-4o-2024-08-06-n-choices-stream-7bef': ['text'],
  // It tells the transcript of a sound as text.
  'openai-gpt-4o-mini-audio-preview-audio-out-8f06': ['text'],
  // It tells a refusal as text, and the reason to end by it.
  'openai-gpt-4o-refusal-json-schema-ba5f': ['text', 'refusal', 'stop'],
  'openrouter-gpt-4.1-refusal-content-filter-json-schema-a763': ['text', 'refusal'],
  'openai-gpt-4o-refusal-json-schema-18e7': ['text', 'refusal', 'stop'],
  'openai-gpt-4o-refusal-json-schema-stream-81a5': ['text', 'refusal', 'stop'],
  // It reads reasoning in summaries alone.
  'deepseek-deepseek-v4-flash-web-search-thinking-cache-read-624f': ['reasoning'],
  // A vendor's own tool, which one client tells as a call.
  'openai-computer-use-preview-hosted-tools-thinking-rsummary-6b8b': ['tools', 'stop'],
  // A reason that the AI SDK does not know.
  'google-finish-no-image-7c18': ['stop'],
  'google-finish-no-image-stream-f949': ['stop'],
};
