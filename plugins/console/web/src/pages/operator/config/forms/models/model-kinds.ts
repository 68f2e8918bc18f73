/** What models of each kind usually have: classes with a price and their units, sizes and limits. Pure. */
import { type ModelKind, modelKinds } from '../../../../../../../../common/domain/models.ts';

export const kindOf = (written: unknown): ModelKind => modelKinds.find((kind) => kind === written) ?? 'chat';

/** The classes that each kind usually has a price for. */
export const usualClasses: Readonly<Record<ModelKind, readonly string[]>> = {
  chat: ['input', 'cache_read', 'cache_write_5m', 'output'],
  image: ['image', 'input', 'output_image'],
  video: ['second', 'request'],
  embedding: ['input'],
  rerank: ['search', 'input'],
  decision: ['input'],
  speech: ['character', 'output_audio'],
  transcription: ['audio', 'input_audio', 'output'],
  moderation: ['input'],
  realtime: ['input', 'cache_read', 'input_audio', 'cache_read_audio', 'output', 'output_audio'],
};

/** The members for the size of a model, in tokens. */
export const sizesOf = (kind: ModelKind): readonly ('context' | 'max_output')[] => {
  if (kind === 'chat' || kind === 'realtime') return ['context', 'max_output'];
  return kind === 'image' || kind === 'video' || kind === 'speech' ? [] : ['context'];
};

type Limit = 'prompt' | 'images' | 'references' | 'seconds' | 'size';
/** The limits that a vendor usually documents, of those that are one number or size. */
export const limitsOf = (kind: ModelKind): readonly Limit[] => {
  if (kind === 'image') return ['images', 'references', 'size', 'prompt'];
  if (kind === 'video') return ['seconds', 'references', 'size', 'prompt'];
  return kind === 'speech' ? ['prompt'] : [];
};

const tools = new Set(['call', 'web_search', 'web_fetch', 'code_execution', 'file_search']);
const pieces = ['image', 'second', 'request', 'search'] as const;

/** Key of the text that says what a price is for, such as `million`. */
export function unitOf(name: string) {
  const piece = pieces.find((one) => one === name);
  if (piece !== undefined) return piece;
  if (tools.has(name)) return 'call';
  return name === 'character' ? 'characters' : name === 'audio' ? 'hour' : 'million';
}

/** Whether it is counted in tokens: such classes have tiers. */
export const isOfTokens = (name: string): boolean => unitOf(name) === 'million';
/** Whether a piece has prices by its size. */
export const hasSizes = (name: string): name is 'image' | 'second' => name === 'image' || name === 'second';

/** An amount in USD: zero or more, with at most nine decimals. */
export const isAmount = (text: string): boolean => /^(0|[1-9]\d{0,11})(\.\d{1,9})?$/.test(text);
/** A number of tokens, also as 200k or 1M. */
export const isTokenCount = (text: string): boolean => /^[1-9]\d{0,11}(\.\d+)?[km]?$/i.test(text);
