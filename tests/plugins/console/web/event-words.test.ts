/** Events of timelines have words in each language, made of the codes and numbers that are stored; recorded requests have a place. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import i18next, { type TFunction } from 'i18next';
import { Unfetchable } from '../../../../core/tools/guarded-fetch.ts';
import { faultOf, Refused } from '../../../../plugins/common/kit/fetch/post.ts';
import { placeOf } from '../../../../plugins/console/web/src/calls/recorded.ts';
import { eventWords, failureWords } from '../../../../plugins/console/web/src/pages/operator/sums/event-words.ts';
import { faultWords } from '../../../../plugins/console/web/src/parts/delivery-fault.ts';
import english from '../../../../plugins/console/web/src/texts/en/index.ts';
import operator from '../../../../plugins/console/web/src/texts/en/operator.ts';

type Values = readonly (string | number | boolean | null)[];
/** Each kind of the shipped plugins, with values of each of its codes. */
const samples: Readonly<Record<string, readonly Values[]>> = {
  'agent-loop.turn': [[1, 200, '0.0123']],
  'agent-loop.call': ['answered', 'failed'].map((end) => ['crm__search', end, '0.001']),
  'plans.plan': [['pro']],
  'auth.tags': [['team=search']],
  'rate-limit.standing': [
    [null, 'plan', 'rpm', 59, 60, 'plan', 'tpm', 9, 10, 'key', 'concurrency', 4, 5],
    ['rpd', 'plan', 'rpd', 0, 10],
  ],
  'billing.held': [
    ['120000000', 900, 500, null, null],
    ['120000000', 900, 500, '3', '2'],
  ],
  'billing.end': [
    [null, '12349', false, null],
    [null, '12349', true, '20000'],
    ...(['not_sent', 'refused', 'unknown'] as const).map((reason) => [reason, '0', false, null]),
  ],
  'billing.impossible': [['{"input":1}']],
  'billing.instead': [['dear', 'cheap']],
  'billing.served': [['cache']],
  'cache.hit': [
    ['equal', 12],
    ['similar', 90],
  ],
  'guardrails.checked': [['mask 2 (company)']],
  'web-search.searched': ['answered', 'refused', 'unknown'].map((end) => [end, 3, 120]),
  'mcp.called': ['answered', 'refused', 'unknown'].map((end) => ['crm', 'search', end, 120]),
  'multiplier.ratio': [['1.5']],
  'protocol-convert.form': [
    ['chat', null, null],
    ['chat', 'messages', 'top_k'],
  ],
  'endpoints.form': [
    ['embeddings', false, null],
    ['embeddings', true, 'user'],
  ],
  'websockets.sent': [
    [true, 100, 2_000],
    [false, 100, 100],
  ],
  'route.targets': [
    ['a/m (chat)', 0, null],
    ...['listed', 'takes the media', 'by weight', 'by the session', 'where the session was before'].map((why) => [
      'a/m (chat)',
      2,
      why,
    ]),
    ['a/m (chat)', 0, 'the fastest'],
    ['a/m (chat)', 0, 'pinned'],
  ],
  'route.again': [[1]],
  'route.final': ['setting', 'effects', 'share'].map((why) => [1, why]),
  'route.instead': ['context_length', 'unavailable', 'content_filter'].map((why) => ['small', 'large', why]),
  'route.open': [
    ['a/m', 2_000],
    ['a/m', 0],
  ],
  'route.resting': [
    ['a/m', 2_000],
    ['a/m', 0],
  ],
  'route.wait': [
    [20, true],
    [20, false],
  ],
  'route.place': [['a']],
  'route.goes': [[1, 'a', 'm', 'a#1', null]],
  'route.attempt': [
    ...['running', 'not_sent', 'refused', 'unknown', 'answered', 'lost'].map((result) => [1, result, null, null]),
    [1, 'answered', 200, 12],
  ],
  'route.hedge': [[2, 1, 800]],
  'route.no_hedge': [
    [1, 'share'],
    [1, 'capacity'],
  ],
  'route.vendor': [
    [1, 'Overloaded', null],
    [1, null, 'req_1'],
  ],
};

const plugins = new URL('../../../../plugins/', import.meta.url);
const texts = new URL('console/web/src/texts/', plugins);

async function translations(): Promise<ReadonlyMap<string, TFunction>> {
  const library = i18next.createInstance();
  const codes = readdirSync(texts).filter((name) => /^\w\w$/.test(name) && name !== 'en');
  const resources = Object.fromEntries(
    codes.map((code) => {
      const read = (name: string) => JSON.parse(readFileSync(new URL(`${code}/${name}.json`, texts), 'utf8')) as object;
      return [code, { translation: { ...read('client'), operator: read('operator') } }];
    }),
  );
  const en = { translation: { ...english, operator } };
  await library.init({ resources: { ...resources, en }, fallbackLng: false, interpolation: { escapeValue: false } });
  return new Map(['en', ...codes].map((code) => [code, library.getFixedT(code) as unknown as TFunction]));
}

test('every event that a shipped plugin records has words in each language, for each of its codes', async () => {
  const defined = readdirSync(plugins, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.startsWith('console') && !file.includes('node_modules'))
    .flatMap((file) => [
      ...readFileSync(new URL(file, plugins), 'utf8').matchAll(/define(?:Operator)?Event\(\s*'([\w.-]+)'/g),
    ])
    .map(([, id]) => id!);
  assert.deepEqual(Object.keys(samples).sort(), defined.sort());
  for (const [language, t] of await translations())
    for (const [kind, all] of Object.entries(samples))
      for (const values of all) {
        const words = eventWords({ kind, values, text: 'NO WORDS' }, { t, language });
        assert.doesNotMatch(words, /NO WORDS|\{\{|undefined|null|NaN/, `${language} ${kind} ${values.join()}`);
      }
});

test('an event says its amounts, counts and times in words of the language', async () => {
  const all = await translations();
  const say = (language: string, kind: string, ...values: Values) =>
    eventWords({ kind, values, text: 'in English' }, { t: all.get(language)!, language });
  assert.equal(
    say('de', 'rate-limit.standing', 'rpm', 'plan', 'rpm', 0, 60),
    'abgelehnt durch ein Limit (Anfragen pro Minute); übrig: Tarif: Anfragen pro Minute 0 / 60',
  );
  assert.equal(say('en', 'billing.end', null, '12349', false, null), '$0.000012349 charged');
  assert.match(say('de', 'billing.end', null, '200000', false, null), /0,0002\u00a0\$/);
  assert.match(say('de', 'multiplier.ratio', '1.2'), /1,2/);
  assert.equal(say('en', 'route.attempt', 1, 'refused', 529, 12), 'attempt 1: refused · 529 after 12 ms');
  assert.equal(failureWords('the upstream answered 500', { t: all.get('zh')!, language: 'zh' }), '上游返回 500');
  const failed = (text: string, language = 'de') => failureWords(text, { t: all.get(language)!, language });
  const refused = 'connect ECONNREFUSED 10.0.0.1:443';
  assert.equal(failed(refused, 'zh'), `无法连接 (${refused})`);
  assert.equal(failed('Headers Timeout Error'), 'es kam nicht rechtzeitig eine Antwort');
  assert.equal(failed('Connect Timeout Error (timeout: 10000ms)', 'en'), 'no connection came about in time');
  assert.equal(failed('unable to verify the first certificate').split(' (')[0], 'der Verbindung wird nicht vertraut');
  assert.equal(failed('Another attempt of this request answered first.'), 'aufgegeben, weil ein anderer zuerst kam');
  assert.equal(failed('something of a plugin'), 'something of a plugin');
});

test('an event of an added plugin, or with a code of another version, is shown in English', async () => {
  const t = (await translations()).get('de')!;
  const shown = (kind: string, values: Values) =>
    eventWords({ kind, values, text: 'in English' }, { t, language: 'de' });
  assert.equal(shown('lockbox.opened', ['x']), 'in English');
  assert.equal(shown('route.final', [1, 'a new reason']), 'in English');
  assert.equal(shown('billing.held', ['no number', 1, 1, null, null]), 'in English');
});

test('a message that was not taken says why in the language of the reader; words of a receiver stay', async () => {
  const all = await translations();
  const german = (fault: string) => faultWords(fault, all.get('de')!);
  assert.equal(german(faultOf(new Refused('it answered 503', 503))), 'Antwort 503');
  const refused = faultOf(Object.assign(new Error(), { code: 'ECONNREFUSED' }));
  assert.equal(german(refused), 'die Verbindung ist gescheitert (ECONNREFUSED)');
  assert.equal(german('invalid token'), 'invalid token');
  const sources = ['notices/deliveries.ts', 'alerts/sinks/mail-and-webhook.ts'].map((file) =>
    readFileSync(new URL(file, plugins), 'utf8'),
  );
  const own = [...sources.join().matchAll(/new (?:Final|Refused)\('([^']+)'/g)].map(([, text]) => text!);
  assert.equal(own.length, 4);
  const slow = faultOf(Object.assign(new Error(), { name: 'TimeoutError' }));
  const guarded = faultOf(new Unfetchable('its host is not a public address'));
  for (const fault of [...own, slow, guarded, faultOf(new Error())])
    assert.equal(
      new Set([fault, ...['de', 'ja', 'zh'].map((code) => faultWords(fault, all.get(code)!))]).size,
      4,
      fault,
    );
});

test('a recorded request has the address of its operation and protocol, and a form of files has none', () => {
  const place = (operation: string, protocol: string | null, streamed = false) =>
    placeOf({ operation, protocol, model: 'a/b', streamed })?.path;
  assert.equal(place('chat', 'chat'), '/v1/chat/completions');
  assert.equal(place('generate-content', 'gemini', true), '/v1beta/models/a%2Fb:streamGenerateContent?alt=sse');
  assert.equal(place('generate-content', 'gemini'), '/v1beta/models/a%2Fb:generateContent');
  assert.equal(place('count-tokens', 'messages'), '/v1/messages/count_tokens');
  assert.equal(place('transcriptions', null), undefined);
  assert.equal(place('constructor', null), undefined);
});
