/** The reports of usage and costs: which calls each one sums up, and its results' members. Pure. */
import type { SpendSums } from '../common/domain/admin/ledger.ts';
import type { ModelKind } from '../common/domain/models.ts';
import { formatUsd } from '../common/domain/money.ts';
import { promptTokens, type Usage } from '../common/domain/usage.ts';
import type { GroupName, Pages, QueryForm } from './query.ts';

export interface Report {
  /** Below `/v1/organization`. */
  readonly path: string;
  readonly object: string;
  readonly form: QueryForm;
  /** Calls of models of this kind; absent: of all kinds. */
  readonly kind?: ModelKind;
  /** Results without any of it are left out; absent: every call counts. */
  counts?(usage: Usage): number;
  members(sums: SpendSums): Record<string, unknown>;
  /** Members that are null for want of a group. */
  readonly groups: readonly string[];
}

const pages: Pages = {
  '1d': { usual: 7, most: 31 },
  '1h': { usual: 24, most: 168 },
  '1m': { usual: 60, most: 1440 },
};
const attributed: readonly (readonly [string, GroupName])[] = (['api_key_id', 'project_id', 'user_id'] as const).map(
  (name) => [name, name],
);
const form: QueryForm = {
  pages,
  groups: new Map<string, GroupName>([['model', 'model'], ...attributed]),
  models: 'models',
};
const costForm: QueryForm = {
  pages: { '1d': { usual: 7, most: 180 } },
  groups: new Map<string, GroupName>([['line_item', 'model'], ...attributed]),
  models: 'line_items',
};
const usualGroups = ['project_id', 'user_id', 'api_key_id', 'model'];

/** A report of the calls of one kind, with their count. */
function ofKind(name: string, kind: ModelKind, members: (usage: Usage) => Record<string, number>, more: string[] = []) {
  return {
    path: `/usage/${name}`,
    object: `organization.usage.${name}.result`,
    form,
    kind,
    members: ({ usage, requests }: SpendSums) => ({ ...members(usage), num_model_requests: requests }),
    groups: [...usualGroups, ...more],
  };
}

/** A report of what calls of any kind used of a tool. */
function ofTool(
  path: string,
  name: string,
  counts: (usage: Usage) => number,
  members: (sums: SpendSums) => Record<string, number>,
  groups: string[],
): Report {
  return { path: `/usage/${path}`, object: `organization.usage.${name}.result`, form, counts, members, groups };
}

const webSearches = ({ web_search = 0 }: Usage) => web_search;
const fileSearches = ({ file_search = 0 }: Usage) => file_search;
const sessions = ({ code_execution = 0 }: Usage) => code_execution;

export const reports: readonly Report[] = [
  ofKind('completions', 'chat', chatTokens, ['batch', 'service_tier', 'api_source']),
  ofKind('embeddings', 'embedding', (usage) => ({ input_tokens: promptTokens(usage) })),
  ofKind('moderations', 'moderation', (usage) => ({ input_tokens: promptTokens(usage) })),
  ofKind('images', 'image', ({ image = 0 }) => ({ images: image }), ['size', 'source']),
  ofKind('audio_speeches', 'speech', ({ character = 0 }) => ({ characters: character })),
  ofKind('audio_transcriptions', 'transcription', ({ audio = 0 }) => ({ seconds: audio })),
  ofTool(
    'web_search_calls',
    'web_searches',
    webSearches,
    ({ usage, requests }) => ({ num_requests: webSearches(usage), num_model_requests: requests }),
    [...usualGroups, 'context_level', 'api_source'],
  ),
  ofTool('file_search_calls', 'file_searches', fileSearches, ({ usage }) => ({ num_requests: fileSearches(usage) }), [
    'project_id',
    'user_id',
    'api_key_id',
    'vector_store_id',
  ]),
  ofTool(
    'code_interpreter_sessions',
    'code_interpreter_sessions',
    sessions,
    ({ usage }) => ({ num_sessions: sessions(usage) }),
    ['project_id'],
  ),
  // The gateway keeps no vector stores.
  ofTool(
    'vector_stores',
    'vector_stores',
    () => 0,
    () => ({ usage_bytes: 0 }),
    ['project_id'],
  ),
  {
    path: '/costs',
    object: 'organization.costs.result',
    form: costForm,
    members: ({ cost }) => ({
      amount: { value: Number(formatUsd(cost)), currency: 'usd' },
      quantity: null,
      quantity_unit: null,
    }),
    groups: ['project_id', 'user_id', 'api_key_id', 'line_item', 'api_source'],
  },
];

function chatTokens(usage: Usage): Record<string, number> {
  const { output = 0, reasoning = 0, output_audio = 0, output_image = 0, cache_read = 0 } = usage;
  const { cache_write_5m = 0, cache_write_1h = 0, input_audio = 0, input_image = 0 } = usage;
  const { cache_read_audio = 0, cache_read_image = 0 } = usage;
  const cached = cache_read + cache_read_audio + cache_read_image;
  const input = promptTokens(usage);
  const writes = cache_write_5m + cache_write_1h;
  return {
    input_tokens: input,
    input_cached_tokens: cached,
    input_cache_write_tokens: writes,
    input_uncached_tokens: input - cached - writes,
    input_audio_tokens: input_audio + cache_read_audio,
    input_image_tokens: input_image + cache_read_image,
    output_tokens: output + reasoning + output_audio + output_image,
    output_text_tokens: output + reasoning,
    output_audio_tokens: output_audio,
    output_image_tokens: output_image,
  };
}
