/** Reads the query of a usage report: span, buckets, groups, filters and page. Pure. */
import { GatewayError } from '../../core/contract/errors.ts';

export type GroupName = 'model' | 'api_key_id' | 'project_id' | 'user_id' | 'tag';

export interface ReportQuery {
  /** Wall-clock milliseconds: each begins a bucket that the next one ends. */
  readonly bounds: readonly number[];
  /** Cursor of the next page; undefined: this is the last. */
  readonly next: string | undefined;
  readonly groups: readonly GroupName[];
  readonly keyIds: readonly string[] | undefined;
  readonly models: readonly string[] | undefined;
  readonly projectIds: readonly string[] | undefined;
  readonly personIds: readonly string[] | undefined;
  /** Each as `NAME=VALUE`; one as `NAME` where the groups are its values. */
  readonly tags: readonly string[] | undefined;
}

type Width = '1m' | '1h' | '1d';

/** Buckets of one page. */
export type Pages = { readonly [W in Width]?: { readonly usual: number; readonly most: number } };

export interface QueryForm {
  readonly pages: Pages;
  /** What groups are called in this report, and what they are. */
  readonly groups: ReadonlyMap<string, GroupName>;
  /** The parameter that names models. */
  readonly models: 'models' | 'line_items';
}

const widthMs: Readonly<Record<Width, number>> = { '1m': 60_000, '1h': 3_600_000, '1d': 86_400_000 };
const latestSecond = 253_370_764_800;
const mostNames = 100;
/** A call has so many at most. */
const mostTags = 8;
/** Seconds. */
const quarter = 900;

/** Not recorded of calls: a filter or group by one of these is refused. */
const unknownFilters = ['batch', 'sizes', 'sources', 'context_levels', 'vector_store_ids'];

export function reportQuery(query: URLSearchParams, form: QueryForm, now: number): ReportQuery {
  for (const name of unknownFilters)
    if (listIn(query, name) !== undefined) throw wrong(name, `"${name}" is not supported: calls are not kept by it.`);
  const asked = secondsIn(query, 'start_time');
  if (asked === undefined) throw wrong('start_time', '"start_time" is required, in Unix seconds.');
  const tags = tagsIn(query);
  const end = secondsIn(query, 'end_time') ?? Math.ceil(now / 1000);
  const step = widthMs[widthIn(query, form.pages)] / 1000;
  if (tags !== undefined && step < quarter)
    throw wrong('bucket_width', 'By tags calls are summed up for quarters of an hour: "bucket_width" is 1h or 1d.');
  const start = tags === undefined ? asked : Math.floor(asked / quarter) * quarter;
  const groups = groupsIn(query, form.groups);
  const projectIds = listIn(query, 'project_ids');
  const personIds = listIn(query, 'user_ids');
  if (tags !== undefined) checkTagged(groups, projectIds ?? personIds);
  const { usual, most } = form.pages[widthIn(query, form.pages)]!;
  const limit = limitIn(query, usual, most);
  const first = pageIn(query, start, end, step) ?? start;
  const bounds = [first];
  while (bounds.length <= limit && bounds.at(-1)! < end)
    bounds.push(Math.min(end, (Math.floor(bounds.at(-1)! / step) + 1) * step));
  const last = bounds.at(-1)!;
  return {
    bounds: bounds.length < 2 ? [] : bounds.map((seconds) => seconds * 1000),
    next: last < end ? `page_${last}` : undefined,
    groups,
    tags,
    projectIds,
    personIds,
    keyIds: listIn(query, 'api_key_ids'),
    models: listIn(query, form.models),
  };
}

/** Sums by tags do not tell projects and people apart. */
function checkTagged(groups: readonly GroupName[], others: readonly string[] | undefined): void {
  if (others !== undefined || groups.includes('project_id') || groups.includes('user_id'))
    throw wrong('tags', 'A report of a tag is not by projects or users as well.');
}

function secondsIn(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const seconds = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN;
  if (seconds <= latestSecond) return seconds;
  throw wrong(name, `"${name}" is a time in whole Unix seconds.`);
}

function widthIn(query: URLSearchParams, pages: Pages): Width {
  const text = query.get('bucket_width') ?? '1d';
  if (Object.hasOwn(pages, text)) return text as Width;
  throw wrong('bucket_width', `"bucket_width" is one of ${Object.keys(pages).join(', ')}.`);
}

function limitIn(query: URLSearchParams, usual: number, most: number): number {
  const text = query.get('limit');
  if (text === null) return usual;
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= most) return limit;
  throw wrong('limit', `"limit" is a whole number from 1 to ${most} with buckets of this width.`);
}

/** The second at which the page begins: a boundary between two buckets. */
function pageIn(query: URLSearchParams, start: number, end: number, step: number): number | undefined {
  const text = query.get('page');
  if (text === null || text === '') return undefined;
  const second = Number(/^page_(\d{1,12})$/.exec(text)?.[1] ?? Number.NaN);
  if (second > start && second < end && second % step === 0) return second;
  throw wrong('page', '"page" is no page of this report: pass on "next_page" with the same parameters.');
}

/** The tags of `tags=NAME=VALUE,…`, which calls have all of, and the name of `group_by=tag:NAME`. */
export function tagsIn(query: URLSearchParams): readonly string[] | undefined {
  const tags = new Set(listIn(query, 'tags') ?? []);
  const nameOf = (tag: string) => tag.split('=', 1)[0]!;
  if ([...tags].some((text) => !text.includes('='))) throw wrong('tags', '"tags" takes tags as NAME=VALUE.');
  if (tags.size > mostTags) throw wrong('tags', `A call has at most ${mostTags} tags.`);
  if (new Set([...tags].map(nameOf)).size < tags.size)
    throw wrong('tags', 'A call has one value of a tag: "tags" takes each name once.');
  const groups = new Set((listIn(query, 'group_by') ?? []).filter(isOfTag).map((name) => name.slice(tagPrefix.length)));
  if (groups.size > 1) throw wrong('group_by', 'A report is grouped by the values of one tag.');
  const all = [...tags, ...groups];
  return all.length === 0 ? undefined : all;
}

const tagPrefix = 'tag:';
const isOfTag = (name: string) => name.startsWith(tagPrefix) && name.length > tagPrefix.length;

function groupsIn(query: URLSearchParams, groups: QueryForm['groups']): readonly GroupName[] {
  const wanted = listIn(query, 'group_by') ?? [];
  const found = new Set<GroupName>();
  for (const name of wanted) {
    const group = isOfTag(name) ? 'tag' : groups.get(name);
    if (group === undefined) {
      const known = [...groups.keys(), `${tagPrefix}NAME`].join(', ');
      throw wrong('group_by', `"group_by" of this report takes ${known}.`);
    }
    found.add(group);
  }
  return [...found];
}

/** `name=a&name=b`, `name[]=a` or `name=a,b`; undefined: not given. */
function listIn(query: URLSearchParams, name: string): readonly string[] | undefined {
  const values = [...query.getAll(name), ...query.getAll(`${name}[]`)].flatMap((text) => text.split(','));
  const given = values.map((text) => text.trim()).filter((text) => text !== '');
  if (given.length > mostNames) throw wrong(name, `"${name}" has more than ${mostNames} values.`);
  return given.length === 0 ? undefined : given;
}

function wrong(field: string, message: string): GatewayError {
  return new GatewayError('invalid_request', message, { field, shouldRetry: false });
}
