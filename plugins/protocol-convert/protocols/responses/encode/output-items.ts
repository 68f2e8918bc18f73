/** Encodes the items of an answer: messages with their parts, reasoning, calls, searches, images. Pure. */
import type { JsonObject } from '../../../../../core/json/json.ts';
import type { Citation, MediaPart, SearchPart, TokenLogprob } from '../../../../common/canonical/prompt.ts';
import { searchCallItem, toolSearch } from '../tool-search.ts';

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

export function messageItem(id: string, content: readonly JsonObject[], status: ItemStatus): JsonObject {
  return { id, type: 'message', status, role: 'assistant', content };
}

export function textPart(
  text: string,
  annotations: readonly JsonObject[],
  logprobs: readonly JsonObject[],
): JsonObject {
  return { type: 'output_text', annotations, logprobs, text };
}

export function refusalPart(refusal: string): JsonObject {
  return { type: 'refusal', refusal };
}

/** `sealed`: opaque state that the client returns. */
export function reasoningItem(id: string, text: string, sealed: string | undefined): JsonObject {
  return {
    id,
    type: 'reasoning',
    summary: text === '' ? [] : [summaryPart(text)],
    ...(sealed === undefined ? {} : { encrypted_content: sealed }),
  };
}

export function summaryPart(text: string): JsonObject {
  return { type: 'summary_text', text };
}

/** The members of a call that are known at its start. */
export interface CallHead {
  readonly id: string;
  readonly callId: string;
  readonly name: string;
  readonly namespace: string | undefined;
  readonly custom: boolean;
}

/** What the ids of an item for this call begin with. */
export function callPrefix({ namespace, custom }: Pick<CallHead, 'namespace' | 'custom'>): string {
  if (namespace === toolSearch.namespace) return 'tsc';
  return custom ? 'ctc' : 'fc';
}

export function callItem(head: CallHead, input: string, status: ItemStatus): JsonObject {
  const { id, callId, name, namespace, custom } = head;
  if (namespace === toolSearch.namespace) return searchCallItem(head, input, status);
  return {
    id,
    type: custom ? 'custom_tool_call' : 'function_call',
    status,
    call_id: callId,
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(custom ? { input } : { arguments: input }),
  };
}

export function searchItem(id: string, search: SearchPart, status: ItemStatus): JsonObject {
  return { id, type: 'web_search_call', status, action: searchAction(search) };
}

/** Without a query the tool has opened a page. */
function searchAction({ queries, results }: SearchPart): JsonObject {
  const [query] = queries;
  if (query === undefined) return { type: 'open_page', url: results[0]?.url ?? null };
  const sources = results.map(({ url }) => ({ type: 'url', url }));
  return { type: 'search', query, queries, ...(sources.length === 0 ? {} : { sources }) };
}

/** `result`: the image as base64; null until there is one. */
export function imageItem(id: string, media: MediaPart, isDone: boolean): JsonObject {
  const { source } = media;
  const isBytes = source.form === 'bytes';
  return {
    id,
    type: 'image_generation_call',
    status: isDone ? 'completed' : 'in_progress',
    result: isDone && isBytes ? source.base64 : null,
    ...(isBytes && source.mediaType.startsWith('image/') ? { output_format: source.mediaType.slice(6) } : {}),
  };
}

/** Media without an item type, as text; undefined: there is no text for them. */
export function mediaText(media: MediaPart): string | undefined {
  return media.kind === 'image' && media.source.form === 'url' ? `![image](${media.source.url})` : undefined;
}

/** A range in the text, in UTF-16 offsets. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** undefined: the citation names no source. */
export function annotationOf(citation: Citation, span: Span): JsonObject | undefined {
  const { url, title, file } = citation;
  if (url !== undefined) {
    return { type: 'url_citation', start_index: span.start, end_index: span.end, url, title: title ?? '' };
  }
  const filename = title ?? file?.id;
  if (filename === undefined) return undefined;
  if (file?.container === undefined)
    return { type: 'file_citation', file_id: file?.id ?? '', filename, index: span.end };
  const range = { start_index: span.start, end_index: span.end };
  return { type: 'container_file_citation', container_id: file.container, file_id: file.id, filename, ...range };
}

export function logprobObject({ token, logprob, bytes, top }: TokenLogprob): JsonObject {
  return {
    token,
    logprob,
    bytes: bytes ?? [],
    top_logprobs: (top ?? []).map((other) => ({
      token: other.token,
      logprob: other.logprob,
      bytes: other.bytes ?? [],
    })),
  };
}
