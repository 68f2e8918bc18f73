/** The official client reads what its key's account has used: every report, from the demo gateway. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { parseUsd } from '../../plugins/common/domain/money.ts';
import { type Demo, model, shaped, startDemo } from './demo.ts';

let demo: Demo;
before(async () => {
  demo = await startDemo();
});
after(() => demo.stop());

const client = (key = demo.keys.good) => new OpenAI({ baseURL: `${demo.origin}/v1`, apiKey: key, maxRetries: 0 });
/** The client sends its administrator's key to these addresses. */
const usageOf = (key = demo.keys.good) =>
  new OpenAI({ baseURL: `${demo.origin}/v1`, apiKey: key, adminAPIKey: key, maxRetries: 0 }).admin.organization.usage;

const hourAgo = () => Math.floor(Date.now() / 1000) - 3600;

async function get(path: string, key = demo.keys.good) {
  const answer = await fetch(`${demo.origin}${path}`, { headers: { authorization: `Bearer ${key}` } });
  // biome-ignore lint/suspicious/noExplicitAny: answers of several shapes
  return { status: answer.status, json: (await answer.json()) as any };
}

test('calls are in the report of their kind and in the costs, exactly, for their own account alone', async () => {
  const chat = await demo.settled(() =>
    client().chat.completions.create(
      { model, messages: [{ role: 'user', content: 'Hello' }] },
      { headers: { 'x-gateway-tags': 'env=prod' } },
    ),
  );
  const embedding = await demo.settled(() =>
    client().embeddings.create({ model: 'text-embedding-3-small', input: 'one two three' }),
  );
  const start_time = hourAgo();
  const completions = await usageOf().completions({ start_time, group_by: ['model', 'api_key_id'] });
  const [one] = completions.data.flatMap(({ results }) => results);
  assert.ok(one?.object === 'organization.usage.completions.result');
  assert.deepEqual(
    [one.model, one.num_model_requests, one.input_tokens, one.output_tokens],
    [model, 1, chat.usage.input, (chat.usage.output ?? 0) + (chat.usage.reasoning ?? 0)],
  );
  const ofKey = await usageOf().completions({ start_time, api_key_ids: [one.api_key_id!] });
  assert.equal(ofKey.data.flatMap(({ results }) => results).length, 1);
  const ofAnother = await usageOf().completions({ start_time, api_key_ids: ['another'] });
  assert.equal(ofAnother.data.flatMap(({ results }) => results).length, 0);
  const [vectors] = (await usageOf().embeddings({ start_time })).data.flatMap(({ results }) => results);
  assert.ok(vectors?.object === 'organization.usage.embeddings.result' && vectors.model === null);
  assert.equal(vectors.input_tokens, embedding.usage.input);
  const costs = await usageOf().costs({ start_time, group_by: ['line_item'] });
  const items = costs.data.flatMap(({ results }) => results);
  const paid = (amount: bigint) => Number(amount) / 1e9;
  const byItem = new Map(
    items.map((item) => {
      assert.ok(item.object === 'organization.costs.result');
      return [item.line_item, item.amount];
    }),
  );
  assert.deepEqual(byItem.get(model), { value: paid(chat.paid), currency: 'usd' });
  assert.deepEqual(byItem.get('text-embedding-3-small'), { value: paid(embedding.paid), currency: 'usd' });
  const tagged = async (tag: string, by: readonly string[]) => {
    const asked = { start_time, bucket_width: '1h', group_by: by, tags: tag === '' ? undefined : tag } as never;
    const answer = await usageOf().completions(asked);
    return answer.data
      .flatMap(({ results }) => results as unknown as { tag?: string; num_model_requests: number }[])
      .map(({ tag: name, num_model_requests: count }) => [name, count]);
  };
  assert.deepEqual(await tagged('team=search', []), [[undefined, 1]]);
  assert.deepEqual(await tagged('', ['model', 'tag:env']), [['env=prod', 1]]);
  assert.deepEqual(await tagged('env=dev', ['model']), []);
  assert.deepEqual(await tagged('team=search,env=prod', []), [[undefined, 1]]);
  assert.deepEqual(await tagged('team=search,env=dev', []), []);
  assert.deepEqual(await tagged('team=search', ['tag:env']), [['env=prod', 1]]);
  const attributed = async (asked: { readonly project_ids?: string[]; readonly user_ids?: string[] }) => {
    const group_by = ['project_id', 'user_id'] as never[];
    const answer = await usageOf().completions({ start_time, group_by, ...asked });
    return answer.data.flatMap(
      ({ results }) => results as { project_id: string; user_id: string; num_model_requests: number }[],
    );
  };
  const [own, ...more] = await attributed({});
  assert.deepEqual([own!.user_id, own!.num_model_requests, more.length], ['ann', 1, 0]);
  const { project_id } = own!;
  assert.match(project_id, /^[0-9a-f-]{36}$/);
  assert.equal((await attributed({ project_ids: [project_id], user_ids: ['ann', 'ben'] })).length, 1);
  assert.equal((await attributed({ project_ids: [project_id], user_ids: ['ben'] })).length, 0);
  const others = await usageOf(demo.keys.narrow).costs({ start_time });
  assert.equal(others.data.flatMap(({ results }) => results).length, 0);
  const { json: left } = await get('/v1/balance');
  const { json: seen } = await get('/dashboard/billing/usage');
  const { json: limit } = await get('/v1/dashboard/billing/subscription');
  const spent = chat.paid + embedding.paid;
  assert.equal(parseUsd(left.balance), 100_000_000_000n - spent);
  assert.equal(seen.total_usage, Number(spent * 100n) / 1e9);
  assert.equal(limit.hard_limit_usd, 100);
  const { json: now } = await get('/v1/usage?group_by=tag:team');
  assert.deepEqual(now.tags, [{ tag: 'team=search', today: now.today, month: now.month }]);
  const { json: both } = await get('/v1/usage?tags=team=search,env=prod');
  assert.deepEqual(
    both.tags.map((own: { tag: string; today: { requests: number } }) => [own.tag, own.today.requests]),
    [['team=search,env=prod', 1]],
  );
  assert.deepEqual([now.today.requests, now.month.requests, now.balance], [2, 2, left.balance]);
});

test('every report answers, and pages follow one another without a gap', async () => {
  const start_time = hourAgo();
  const usage = usageOf();
  for (const report of [
    usage.moderations({ start_time }),
    usage.images({ start_time }),
    usage.audioSpeeches({ start_time }),
    usage.audioTranscriptions({ start_time }),
    usage.webSearchCalls({ start_time }),
    usage.fileSearchCalls({ start_time }),
    usage.codeInterpreterSessions({ start_time }),
    usage.vectorStores({ start_time }),
  ])
    assert.equal((await report).object, 'page');
  const end_time = start_time + 200;
  const seen: number[] = [];
  let page: string | undefined;
  for (let turns = 0; turns < 10; turns++) {
    const found = await usage.completions({
      start_time,
      end_time,
      bucket_width: '1m',
      limit: 2,
      ...(page && { page }),
    });
    for (const bucket of found.data) {
      assert.equal(bucket.start_time, seen.at(-1) ?? start_time);
      seen.push(bucket.end_time);
    }
    page = found.next_page ?? undefined;
    assert.equal(found.has_more, page !== undefined);
    if (page === undefined) break;
  }
  assert.equal(seen.at(-1), end_time);
});

test('an unsupported query is refused with the name of the field', async () => {
  const start = `start_time=${hourAgo()}`;
  for (const [query, field] of [
    ['', 'start_time'],
    ['start_time=soon', 'start_time'],
    [`${start}&bucket_width=1w`, 'bucket_width'],
    [`${start}&bucket_width=constructor`, 'bucket_width'],
    [`${start}&limit=32`, 'limit'],
    [`${start}&limit=0`, 'limit'],
    [`${start}&page=page_1`, 'page'],
    [`${start}&group_by=service_tier`, 'group_by'],
    [`${start}&batch=true`, 'batch'],
    [`${start}&tags=team`, 'tags'],
    [`${start}&tags=a=b,a=c`, 'tags'],
    [`${start}&tags=a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1`, 'tags'],
    [`${start}&group_by=tag:env,tag:team`, 'group_by'],
    [`${start}&group_by=tag:env&bucket_width=1m`, 'bucket_width'],
    [`${start}&tags=a=b&project_ids=x`, 'tags'],
    [`${start}&group_by=tag:env,user_id`, 'tags'],
    ...['sizes', 'sources', 'context_levels', 'vector_store_ids'].map(
      (name) => [`${start}&${name}[]=x`, name] as const,
    ),
  ] as const) {
    const { status, json } = await get(`/v1/organization/usage/completions?${query}`);
    assert.equal(status, 400, query);
    if (!shaped) assert.equal(json.error.param, field);
  }
  assert.equal((await fetch(`${demo.origin}/v1/organization/costs?${start}`)).status, 401);
});
