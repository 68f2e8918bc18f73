/** Items of a run in the protocol of responses. Pure. */
import type { JsonObject } from '../../../core/json/json.ts';
import type { Sources } from '../search/sources.ts';
import type { End, Opening, ToolDone, ToolUse } from '../talk.ts';
import { filesItem } from './responses-files.ts';
import { searchItem } from './responses-search.ts';

/** A run as its stream needs it. */
export interface ResponsesRun {
  readonly opening: Opening;
  /** Its output, by place; a stream fills it by its events. */
  readonly output: JsonObject[];
  readonly sources: Sources;
  /** A turn's response object as that of the run. */
  echo(response: JsonObject): JsonObject;
  /** Whether the item is a call of a tool of the gateway. */
  isOwn(item: JsonObject): boolean;
  whole(end: End): JsonObject;
}

const labelOf = (name: string, { offered }: Opening): string => offered.find(name)?.wanted.label ?? '';

/** An item that names its call, so that the next request can be made of it. */
export function callItem(done: ToolDone, opening: Opening): JsonObject {
  const { id, name, output, isError, approvedBy, ...use } = done;
  if (opening.offered.isSearch(name)) return searchItem(done, opening);
  if (opening.offered.isFiles(name)) return filesItem(done, opening);
  return {
    ...{ id: `mcp_${id}`, type: 'mcp_call', status: isError ? 'failed' : 'completed' },
    ...{ approval_request_id: approvedBy ?? null, server_label: labelOf(name, opening), name },
    ...{ arguments: use.arguments, output: isError ? null : output, error: isError ? output : null },
  };
}

export function approvalItem({ id, name, ...use }: ToolUse, opening: Opening): JsonObject {
  const server_label = labelOf(name, opening);
  return { id: `mcpr_${id}`, type: 'mcp_approval_request', server_label, name, arguments: use.arguments };
}
