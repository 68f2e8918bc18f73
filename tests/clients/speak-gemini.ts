/** Generated content as the loopback vendor reads and speaks it. */
import { type AgentRequest, type Move, must, pieces, reported, signature, thought } from './agent.ts';
import type { Json, Speech } from './speech.ts';

const usageMetadata = {
  promptTokenCount: reported.input,
  candidatesTokenCount: reported.output - reported.reasoning,
  thoughtsTokenCount: reported.reasoning,
  cachedContentTokenCount: reported.cached,
  totalTokenCount: reported.input + reported.output,
};
/** What a client may send that has no signature of its own. */
const sentinels = ['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go'];

export const gemini: Speech = {
  base: '/v1beta',
  isRequest: (path) => /^\/v1beta\/models\/[^/]+:(stream)?[gG]enerateContent$/.test(path),
  read,
  stream(move) {
    const parts = partsOf(move);
    return parts
      .map((part, index) => {
        const isLast = index === parts.length - 1;
        return `data: ${JSON.stringify(chunk([part], isLast ? { finishReason: 'STOP' } : {}))}\r\n\r\n`;
      })
      .join('');
  },
  whole: (move) => chunk(partsOf(move), { finishReason: 'STOP' }),
  countTokens: (path) => (path.endsWith(':countTokens') ? { totalTokens: reported.input } : undefined),
};

function chunk(parts: Json[], more: Json): Json {
  const candidate = { content: { role: 'model', parts }, index: 0, ...more };
  return { candidates: [candidate], usageMetadata, modelVersion: 'vendors-own-model', responseId: 'r1' };
}

function partsOf(move: Move): Json[] {
  const thoughts = pieces(thought).map((text) => ({ text, thought: true }));
  if (move.kind === 'text') return [...thoughts, ...pieces(move.text).map((text) => ({ text }))];
  return [
    ...thoughts,
    { functionCall: { name: move.tool.name, args: move.input, id: 'fn1' }, thoughtSignature: signature },
  ];
}

function read(body: Json, url: URL): AgentRequest {
  must(
    Array.isArray(body.contents) && body.contents[0]?.role === 'user',
    'contents: the first turn must be of the user',
  );
  let result: string | undefined;
  let open: string[] = [];
  for (const { role, parts } of body.contents) {
    must(/^(user|model)$/.test(role), 'Please use a valid role: user, model.');
    must(Array.isArray(parts) && parts.length > 0, 'contents: a turn is empty');
    const answers = parts.filter((part: Json) => part.functionResponse !== undefined);
    const names = answers.map((part: Json) => part.functionResponse.name).sort();
    must(String(names) === String(open.sort()), `the responses of ${names} do not fit the calls of ${open}`);
    open = parts.filter((part: Json) => part.functionCall !== undefined).map((part: Json) => part.functionCall.name);
    const first = parts.find((part: Json) => part.functionCall !== undefined);
    if (first !== undefined) checkSignature(first);
    if (answers.length > 0) result = textIn(answers.at(-1).functionResponse.response);
  }
  must(open.length === 0, `no response follows the call of ${open}`);
  const declared: Json[] = (body.tools ?? []).flatMap((tool: Json) => tool.functionDeclarations ?? []);
  for (const { name } of declared) must(/^[a-zA-Z_][\w.:-]{0,63}$/.test(name), `Invalid function name: ${name}`);
  for (const { parameters } of declared) checkSubset(parameters);
  const mode = body.toolConfig?.functionCallingConfig?.mode ?? 'AUTO';
  must(
    /^(AUTO|ANY|NONE|VALIDATED)$/.test(mode),
    `Invalid value at 'tool_config.function_calling_config.mode': ${mode}`,
  );
  const { responseJsonSchema, responseSchema } = body.generationConfig ?? {};
  const [, model, method] = /models\/([^/]+):(\w+)$/.exec(decodeURIComponent(url.pathname))!;
  const stream = method === 'streamGenerateContent';
  if (stream) must(url.searchParams.get('alt') === 'sse', 'an array stream was asked for');
  return {
    model,
    stream,
    tools: declared.map(({ name }) => ({ name })),
    result,
    schema: responseJsonSchema ?? responseSchema,
  };
}

function checkSignature({ functionCall, thoughtSignature }: Json): void {
  const isKnown = thoughtSignature === signature || sentinels.includes(thoughtSignature);
  must(isKnown, `Function call ${functionCall.name} is missing a thought_signature`);
}

/** `parameters` takes a subset of OpenAPI; JSON Schema goes into `parametersJsonSchema`. */
function checkSubset(schema: Json): void {
  for (const unknown of ['additionalProperties', '$schema', '$ref', 'const', 'propertyNames'])
    must(schema?.[unknown] === undefined, `Unknown name "${unknown}" at 'tools.function_declarations.parameters'`);
}

function textIn(response: Json): string {
  if (typeof response === 'string') return response;
  return Object.values(response ?? {})
    .map(textIn)
    .join('');
}
