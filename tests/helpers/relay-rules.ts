/** Which recordings do not leave byte for byte, each with the rule that says so; all others do. */

/** Streams whose bytes change. */
export const reshaped: Readonly<Record<string, string>> = {
  'google-gemini-2.5-flash-toolresult-jsonarray-stream-8ec6': 'an array stream becomes one object on each line',
  'google-gemini-2.5-flash-tools-thinking-jsonarray-stream-5d3e': 'an array stream becomes one object on each line',
  'google-gemini-2.5-flash-tools-toolresult-jsonarray-stream-77b8': 'an array stream becomes one object on each line',
  'vertex-midstream-err-stream-3b7a': 'an error object that stands outside any frame is put into one',
};

/** An answer ends with its terminal event: this comes after it, and is not waited for when it comes in a chunk of its own. */
export const behindTheEnd: Readonly<Record<string, string>> = {
  'openrouter-gpt-4.1-mini-tools-usage-cost-stream-bd6d': 'data: [DONE]\n\n',
  'openrouter-gpt-5-nano-thinking-usage-cost-stream-eeac': 'data: [DONE]\n\n',
};

/** An error that the vendor sent with 200. */
export const errorsIn200 = new Set(['azure-openllmetry-testing-text-a84b']);

/** Two vendors refuse a wrong key with 400; like every refusal of our key it is not handed on. */
export const keyRefusedBy400 = new Set(['google-gemini-2.5-flash-err400-ccbf', 'xai-grok-4.3-err400-2c51']);

/** Error bodies that hold an address, an account or a project, which is masked. */
export const masked = new Set([
  'azure-openllmetry-testing-text-a84b',
  'openai-gpt-4o-mini-err400-520b',
  'openrouter-claude-haiku-4.5-err400-f58e',
  'openrouter-llama-3.2-3b-instruct-free-err429-33be',
  'google-gemini-2.5-flash-err429-9999',
  'vertex-err429-678f',
  'vertex-gemini-does-not-exist-err404-b456',
]);

/** Streams that are refused before any word, with the status that this amounts to. */
export const refusedWithin: ReadonlyMap<string, number> = new Map([
  ['openai-gpt-4o-2024-08-06-midstream-err-stream-69ba', 429],
]);
