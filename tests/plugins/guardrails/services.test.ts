/** Outside services against strict stand-ins: what each is sent, what its verdicts mean, and what a broken one does. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  chatAnswer,
  type Received,
  startGateway,
  startVendor,
  type TestGateway,
  type Vendor,
} from '../../../plugins/common/author/testing.ts';
import { identity, region, signatureProblem } from '../clouds/bedrock-stand-in.ts';
import { type GoogleStandIn, startGoogle } from '../clouds/google-stand-in.ts';

interface Case {
  /** Absent: its name. */
  readonly type?: string;
  readonly settings: object;
  /** Throws for what the service would refuse. */
  read(request: Received, text: string): void;
  readonly passes: unknown;
  readonly hits: unknown;
  /** An answer that names a place, or a replaced text. */
  readonly masks?: (text: string) => unknown;
  readonly garbage: unknown;
}

const json = (request: Received) => JSON.parse(request.body.toString());
const nothing = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };
const secret = 'ada@example.com';

const cases: Record<string, Case> = {
  litellm: {
    settings: { key: 'k', parameters: { threshold: 0.8 } },
    read(request, text) {
      assert.equal(request.url, '/beta/litellm_basic_guardrail_api');
      assert.equal(request.headers['x-api-key'], 'k');
      assert.deepEqual(json(request), {
        texts: [text],
        input_type: 'request',
        structured_messages: [{ role: 'user', content: text }],
        request_data: {},
        additional_provider_specific_params: { threshold: 0.8 },
      });
    },
    passes: { action: 'NONE' },
    hits: { action: 'BLOCKED', blocked_reason: 'because' },
    masks: (text) => ({ action: 'GUARDRAIL_INTERVENED', texts: [text.replace(secret, '<MAIL>')] }),
    garbage: { action: 'MAYBE' },
  },
  presidio: {
    settings: { entities: ['EMAIL_ADDRESS'] },
    read(request, text) {
      assert.equal(request.url, '/analyze');
      assert.deepEqual(json(request), { text, language: 'en', score_threshold: 0.5, entities: ['EMAIL_ADDRESS'] });
    },
    passes: [],
    hits: [{ entity_type: 'EMAIL_ADDRESS', start: 0, end: 4, score: 1 }],
    // Python counts characters: the emoji before is one.
    masks: (text) => {
      const start = [...text.slice(0, text.indexOf(secret))].length;
      return [
        { entity_type: 'EMAIL_ADDRESS', start, end: start + secret.length, score: 1, analysis_explanation: null },
      ];
    },
    garbage: [{ entity_type: 'EMAIL_ADDRESS', start: 4, end: 4_000 }],
  },
  lakera: {
    settings: { key: 'k', project: 'project-1' },
    read(request, text) {
      assert.equal(request.url, '/v2/guard');
      assert.equal(request.headers.authorization, 'Bearer k');
      assert.deepEqual(json(request), {
        messages: [{ role: 'user', content: text }],
        payload: true,
        project_id: 'project-1',
      });
    },
    passes: { flagged: false, payload: [] },
    hits: { flagged: true, payload: [] },
    masks: (text) => {
      const start = text.indexOf(secret);
      const end = start + secret.length;
      return {
        flagged: true,
        payload: [{ start, end, text: secret, detector_type: 'pii/email', labels: [], message_id: 0 }],
      };
    },
    garbage: {},
  },
  openai_moderations: {
    settings: { key: 'k' },
    read(request, text) {
      assert.equal(request.url, '/moderations');
      assert.equal(request.headers.authorization, 'Bearer k');
      assert.deepEqual(json(request), { model: 'omni-moderation-latest', input: [text] });
    },
    passes: { results: [{ flagged: false, categories: {} }] },
    hits: { results: [{ flagged: true, categories: { violence: true } }] },
    garbage: { results: [] },
  },
  azure_content_safety: {
    settings: { key: 'k', shield: false },
    read(request, text) {
      assert.equal(request.url, '/contentsafety/text:analyze?api-version=2024-09-01');
      assert.equal(request.headers['ocp-apim-subscription-key'], 'k');
      assert.deepEqual(json(request), {
        text,
        categories: ['Hate', 'SelfHarm', 'Sexual', 'Violence'],
        blocklistNames: [],
        outputType: 'EightSeverityLevels',
      });
    },
    passes: { blocklistsMatch: [], categoriesAnalysis: [{ category: 'Hate', severity: 3 }] },
    hits: { blocklistsMatch: [], categoriesAnalysis: [{ category: 'Hate', severity: 4 }] },
    garbage: { blocklistsMatch: [] },
  },
  azure_shield: {
    settings: { type: 'azure_content_safety', key: 'k', categories: [] },
    read(request, text) {
      assert.equal(request.url, '/contentsafety/text:shieldPrompt?api-version=2024-09-01');
      assert.deepEqual(json(request), { userPrompt: text, documents: [] });
    },
    passes: { userPromptAnalysis: { attackDetected: false }, documentsAnalysis: [] },
    hits: { userPromptAnalysis: { attackDetected: true }, documentsAnalysis: [] },
    garbage: { userPromptAnalysis: {} },
  },
  bedrock_guardrail: {
    settings: { key: 'k', guardrail: 'abc123', version: '2' },
    read(request, text) {
      assert.equal(request.url, '/guardrail/abc123/version/2/apply');
      assert.equal(request.headers.authorization, 'Bearer k');
      assert.deepEqual(json(request), { source: 'INPUT', content: [{ text: { text } }] });
    },
    passes: { action: 'NONE', outputs: [], assessments: [] },
    hits: {
      action: 'GUARDRAIL_INTERVENED',
      outputs: [{ text: 'Blocked.' }],
      assessments: [{ topicPolicy: { topics: [{ action: 'BLOCKED', name: 'x', type: 'DENY' }] } }],
    },
    masks: (text) => ({
      action: 'GUARDRAIL_INTERVENED',
      outputs: [{ text: text.replace(secret, '{EMAIL}') }],
      assessments: [
        { sensitiveInformationPolicy: { piiEntities: [{ action: 'ANONYMIZED', type: 'EMAIL', match: secret }] } },
      ],
    }),
    garbage: { outputs: [] },
  },
  bedrock_by_provider: {
    settings: { type: 'bedrock_guardrail', provider: 'vendor', guardrail: 'abc123', version: '2' },
    read(request, text) {
      // The credential of the provider.
      assert.equal(request.headers.authorization, 'Bearer k');
      assert.deepEqual(json(request), { source: 'INPUT', content: [{ text: { text } }] });
    },
    passes: { action: 'NONE', outputs: [], assessments: [] },
    hits: { action: 'GUARDRAIL_INTERVENED', outputs: [], assessments: [] },
    garbage: { outputs: [] },
  },
  model_armor: {
    settings: { key: 'k', template: 'projects/p/locations/europe-west1/templates/t' },
    read(request, text) {
      assert.equal(request.url, '/v1/projects/p/locations/europe-west1/templates/t:sanitizeUserPrompt');
      assert.equal(request.headers.authorization, 'Bearer k');
      assert.deepEqual(json(request), { userPromptData: { text } });
    },
    passes: { sanitizationResult: { filterMatchState: 'NO_MATCH_FOUND', invocationResult: 'SUCCESS' } },
    hits: { sanitizationResult: { filterMatchState: 'MATCH_FOUND', invocationResult: 'SUCCESS' } },
    garbage: { sanitizationResult: { filterMatchState: 'NO_MATCH_FOUND', invocationResult: 'FAILURE' } },
  },
  bedrock_signed: {
    type: 'bedrock_guardrail',
    settings: { guardrail: 'abc123', version: '3', provider: 'signed' },
    read(request) {
      assert.equal(request.url, '/guardrail/abc123/version/3/apply');
      assert.equal(signatureProblem(request, request.body), undefined);
    },
    passes: { action: 'NONE', outputs: [], assessments: [] },
    hits: { action: 'GUARDRAIL_INTERVENED', outputs: [], assessments: [] },
    garbage: { outputs: [] },
  },
  model_armor_authorized: {
    type: 'model_armor',
    settings: { provider: 'cloud', template: 'projects/p/locations/europe-west1/templates/t' },
    read(request) {
      assert.equal(request.headers.authorization, `Bearer ${google.tokens.issued.at(-1)}`);
    },
    passes: { sanitizationResult: { filterMatchState: 'NO_MATCH_FOUND', invocationResult: 'SUCCESS' } },
    hits: { sanitizationResult: { filterMatchState: 'MATCH_FOUND', invocationResult: 'SUCCESS' } },
    garbage: { sanitizationResult: {} },
  },
  prisma_airs: {
    settings: { key: 'k', profile: 'strict' },
    read(request, text) {
      assert.equal(request.url, '/v1/scan/sync/request');
      assert.equal(request.headers['x-pan-token'], 'k');
      assert.deepEqual(json(request), {
        ai_profile: { profile_name: 'strict' },
        metadata: { app_name: 'gateway' },
        contents: [{ prompt: text }],
      });
    },
    passes: { action: 'allow', category: 'benign' },
    hits: { action: 'block', category: 'malicious' },
    garbage: { action: '' },
  },
};

let vendor: Vendor;
let gateway: TestGateway;
let google: GoogleStandIn;
const services = new Map<string, Vendor>();

before(async () => {
  vendor = await startVendor();
  vendor.play(chatAnswer('Noted.'));
  google = await startGoogle({ text: '', meaning: 'stop', usage: nothing });
  for (const name of Object.keys(cases)) services.set(name, await startVendor());
  const names = Object.keys(cases);
  const kinds = ['refuse', 'mask'] as const;
  const checks = names.flatMap((name) =>
    kinds.map((kind) => [
      `${name}-${kind}`,
      {
        type: cases[name]!.type ?? name,
        url: services.get(name)!.origin,
        allow_private: true,
        on: ['prompt'],
        do: kind,
        within: '30s',
        ...cases[name]!.settings,
      },
    ]),
  );
  const all = names.flatMap((name) => kinds.map((kind) => `${name}-${kind}`));
  gateway = await startGateway({
    plugins: ['aws', 'google', 'providers', 'models', 'guardrails', 'prompts', 'route', 'protocol-convert'],
    providers: {
      vendor: { keys: 'k', speaks: { chat: `${vendor.origin}/v1` } },
      signed: {
        keys: `${identity.id}:${identity.secret}:${identity.session}`,
        auth: { scheme: 'aws', service: 'bedrock', region },
        speaks: { chat: `${vendor.origin}/v1` },
      },
      cloud: {
        keys: JSON.stringify(google.user()),
        auth: { scheme: 'google', metadata: google.origin },
        speaks: { chat: `${vendor.origin}/v1` },
      },
    },
    models: Object.fromEntries(all.map((name) => [name, { owned_by: 'x', targets: ['vendor'], price: 'free' }])),
    guardrails: {
      checks: Object.fromEntries(checks),
      policies: Object.fromEntries(all.map((name) => [name, [name]])),
      apply: all.map((name) => ({ policy: name, models: [name] })),
    },
  });
});
after(async () => {
  await gateway?.stop();
  google?.close();
  await Promise.all([vendor, ...services.values()].map((one) => one.stop()));
});

const text = `😀 write to ${secret} now`;
const chat = (model: string) =>
  gateway.post('/v1/chat/completions', { model, messages: [{ role: 'user', content: text }] });

for (const [name, { read, passes, hits, masks, garbage }] of Object.entries(cases)) {
  test(`${name}: its request, a pass, a finding, a text that it masks, and what a broken one does`, async () => {
    const service = services.get(name)!;
    const answered = (value: unknown) => service.play({ body: JSON.stringify(value) });
    answered(passes);
    const passed = await chat(`${name}-refuse`);
    assert.equal(passed.status, 200, await passed.clone().text());
    assert.equal(service.requests.length, 1);
    assert.equal(service.requests[0]!.method, 'POST');
    read(service.requests[0]!, text);
    assert.equal(passed.headers.get('x-gateway-guardrails'), `${name}-refuse=passed`);

    answered(hits);
    const sent = vendor.requests.length;
    const refused = await chat(`${name}-refuse`);
    assert.equal(refused.status, 400);
    assert.match(await refused.text(), /content_policy_violation/);
    assert.equal(vendor.requests.length, sent);

    if (masks !== undefined) {
      answered(masks(text));
      assert.equal((await chat(`${name}-mask`)).status, 200);
      const { content } = JSON.parse(vendor.requests.at(-1)!.body.toString()).messages[0];
      assert.match(content, /^😀 write to \[[A-Z_]+-1\] now$/);
    }

    const before = vendor.requests.length;
    for (const script of [{ body: JSON.stringify(garbage) }, { body: 'no JSON' }, { status: 500, body: '{}' }]) {
      service.play(script);
      const answer = await chat(`${name}-refuse`);
      assert.equal(answer.status, 503, JSON.stringify(script));
      assert.match(await answer.text(), /guardrail_unavailable/);
    }
    assert.equal(vendor.requests.length, before);
  });
}

test('presidio: findings that stand in one another or overlap are one, and nothing of them is sent', async () => {
  const from = [...text.slice(0, text.indexOf(secret))].length;
  const at = (entity: string, start: number, end: number) => ({ entity_type: entity, start, end, score: 1 });
  services
    .get('presidio')!
    .play({ body: JSON.stringify([at('URL', from + 4, from + 15), at('EMAIL_ADDRESS', from, from + 15)]) });
  const inside = await chat('presidio-mask');
  assert.equal(inside.headers.get('x-gateway-guardrails'), 'presidio-mask=masked(1)');
  const sent = () => JSON.parse(vendor.requests.at(-1)!.body.toString()).messages[0].content;
  assert.equal(sent(), '😀 write to [EMAIL_ADDRESS-1] now');
  services
    .get('presidio')!
    .play({ body: JSON.stringify([at('PERSON', from, from + 6), at('URL', from + 4, from + 15)]) });
  const across = await chat('presidio-mask');
  assert.equal(across.headers.get('x-gateway-guardrails'), 'presidio-mask=masked(1)');
  assert.equal(sent(), '😀 write to [PERSON-1] now');
});
