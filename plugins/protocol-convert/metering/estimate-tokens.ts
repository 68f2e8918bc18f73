/** Estimates of a prompt's tokens where the upstream cannot count: texts by a tokenizer, media by flat bounds. */
import type { MediaPart, Part, Prompt, Tool } from '../../common/canonical/prompt.ts';
import { imageTokens, mediaTokens, remoteMediaTokens } from './estimate.ts';
import { countText } from './tokenizer.ts';

/** The tokens that vendors add around a turn, a call or a result, and a declared tool. */
const turnTokens = 4;
const callTokens = 8;
const toolTokens = 12;

/** Estimated tokens of media of unknown size: upper bounds that vendors rarely reach, or usual values. */
interface MediaTokens {
  readonly image: number;
  /** By the length as base64, where the bytes are in the request. */
  other(base64Length: number | undefined): number;
}
const boundMedia: MediaTokens = {
  image: imageTokens,
  other: (length) => (length === undefined ? remoteMediaTokens : mediaTokens(length)),
};
/** Tokens of one picture of usual size, and of one page. */
export const usualMedia: MediaTokens = { image: 1_000, other: () => 2_000 };

/** Texts to tokenize, and tokens that are known already. */
interface Tally {
  readonly media: MediaTokens;
  readonly texts: string[];
  tokens: number;
}

/** An estimate of the input tokens of the prompt: system, turns, tools, media, the format of the answer. */
export async function estimateTokens(prompt: Prompt, media = boundMedia): Promise<number> {
  const tally: Tally = { media, texts: [], tokens: 0 };
  for (const turn of prompt.turns) {
    tally.tokens += turnTokens;
    for (const part of turn.parts) addPart(part, tally);
  }
  for (const tool of prompt.tools) addTool(tool, tally);
  if (prompt.output?.form === 'schema') tally.texts.push(JSON.stringify(prompt.output.schema));
  return tally.tokens + (await countText(tally.texts));
}

function addPart(part: Part, tally: Tally): void {
  switch (part.kind) {
    case 'text':
    case 'refusal':
    case 'reasoning':
      tally.texts.push(part.text);
      return;
    case 'tool-call':
      tally.tokens += callTokens;
      tally.texts.push(part.name, part.input);
      return;
    case 'tool-result':
      tally.tokens += callTokens;
      for (const inner of part.parts) addPart(inner, tally);
      return;
    case 'search':
      tally.texts.push(...part.queries, ...part.results.flatMap(({ title, url }) => [title, url]));
      return;
    default:
      addMedia(part, tally);
  }
}

function addMedia({ kind, source, name, context }: MediaPart, tally: Tally): void {
  for (const text of [name, context]) if (text !== undefined) tally.texts.push(text);
  if (source.form === 'text') tally.texts.push(source.text);
  else if (kind === 'image') tally.tokens += tally.media.image;
  else tally.tokens += tally.media.other(source.form === 'bytes' ? source.base64.length : undefined);
}

/** A vendor's own tool adds a line to its instructions; the content is unknown. */
function addTool(tool: Tool, tally: Tally): void {
  tally.tokens += toolTokens;
  tally.texts.push(tool.name);
  if (tool.kind === 'hosted') return;
  if (tool.description !== undefined) tally.texts.push(tool.description);
  if (tool.kind === 'function' && tool.schema !== undefined) tally.texts.push(JSON.stringify(tool.schema));
  if (tool.kind === 'custom' && tool.grammar !== undefined) tally.texts.push(tool.grammar.definition);
}
