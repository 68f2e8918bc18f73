/** Every client protocol on every upstream protocol: the forbidden word never passes, whatever is refused, masked or noted, and wherever a stream is cut. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startGateway, startVendor, type TestGateway, type Vendor } from '../../../plugins/common/author/testing.ts';
import { clients } from '../../matrix/clients/index.ts';
import { type ClientRequest, type Play, type ProtocolName, protocolNames, type Seen } from '../../matrix/scenario.ts';
import { vendors as words } from '../../matrix/vendors/index.ts';

const word = 'Fliegenpilz';
const actions = ['refuse', 'mask', 'log'] as const;
const places = ['prompt', 'tool result', 'answer', 'tool arguments', 'thinking'] as const;
type Action = (typeof actions)[number];
type Place = (typeof places)[number];

let vendors: Record<ProtocolName, Vendor>;
let gateway: TestGateway;

before(async () => {
  const started = await Promise.all(protocolNames.map(async (name) => [name, await startVendor()] as const));
  vendors = Object.fromEntries(started) as typeof vendors;
  const bases = { chat: '/v1', responses: '/v1', messages: '', gemini: '/v1beta' };
  const each = protocolNames.flatMap((name) => actions.map((action) => [name, action] as const));
  gateway = await startGateway({
    plugins: ['providers', 'models', 'guardrails', 'prompts', 'route', 'protocol-convert'],
    providers: Object.fromEntries(
      protocolNames.map((name) => [name, { keys: 'k', speaks: { [name]: vendors[name].origin + bases[name] } }]),
    ),
    models: Object.fromEntries(
      each.map(([name, action]) => [`${action}-${name}`, { owned_by: 'x', targets: [name], price: 'free' }]),
    ),
    guardrails: {
      checks: Object.fromEntries(
        actions.map((action) => [action, { type: 'words', list: [word], on: ['prompt', 'answer'], do: action }]),
      ),
      policies: Object.fromEntries(actions.map((action) => [action, [action]])),
      apply: actions.map((action) => ({ policy: action, models: [`${action}-*`] })),
      // Small pieces, so that the word lies across many of them.
      stream: { release: 3, overlap: 16 },
    },
  });
});
after(async () => {
  await gateway?.stop();
  await Promise.all(Object.values(vendors).map((vendor) => vendor.stop()));
});

const tool = {
  name: 'look_up',
  description: 'Looks something up.',
  schema: { type: 'object', properties: { what: { type: 'string' } }, required: ['what'] },
};
const called = { id: 'call_one', name: tool.name, input: { what: 'weather' } };

function requestOf(place: Place): ClientRequest {
  const text = place === 'prompt' ? `What of the ${word} here?` : 'What do you know?';
  const turns: ClientRequest['turns'] = [{ by: 'user', parts: [{ kind: 'text', text }] }];
  if (place !== 'tool result') return { turns, tools: [tool], maxOutputTokens: 500 };
  const results = [{ callId: called.id, name: tool.name, text: `It is a ${word}, they say.` }];
  return {
    turns: [...turns, { by: 'assistant', calls: [called] }, { by: 'tools', results }],
    tools: [tool],
    maxOutputTokens: 500,
  };
}

const usage = { input: 20, cacheRead: 0, cacheWrite: 0, output: 30, reasoning: 0 };

function playOf(place: Place): Play {
  const text = place === 'answer' ? `A long story of the ${word} in the wood, and of its end.` : 'A harmless story.';
  const calls = place === 'tool arguments' ? [{ ...called, input: { what: `the ${word} there` } }] : undefined;
  return {
    ...(place === 'thinking'
      ? { reasoning: { text: `They think of a ${word}, and of more.`, signature: 'c2lnbmF0dXJl' } }
      : {}),
    text,
    ...(calls === undefined ? {} : { calls }),
    meaning: calls === undefined ? 'stop' : 'tool-calls',
    usage,
  };
}

async function made(client: ProtocolName, vendor: ProtocolName, isStream: boolean, place: Place, action: Action) {
  const [model, play] = [`${action}-${vendor}`, playOf(place)];
  const type = isStream ? 'text/event-stream' : 'application/json';
  const body = isStream ? words[vendor].stream(play, model).join('') : words[vendor].whole(play, model);
  const bytes = Buffer.from(body);
  vendors[vendor].play({ headers: { 'content-type': type }, body: bytes, cuts: [Math.floor(bytes.length / 3)] });
  const before = vendors[vendor].requests.length;
  const wording = clients[client].word(requestOf(place), { model, isStream });
  const answer = await fetch(gateway.origin + wording.path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...wording.headers },
    body: wording.body,
  });
  const text = await answer.text();
  return { answer, text, sent: vendors[vendor].requests.slice(before).map((one) => one.body.toString()) };
}

type Made = Awaited<ReturnType<typeof made>>;

function seen(client: ProtocolName, isStream: boolean, text: string): Seen {
  return isStream ? clients[client].readStream(text) : clients[client].readWhole(text);
}

const isOfPrompt = (place: Place) => place === 'prompt' || place === 'tool result';

const expectations: Record<Action, (cell: Made, client: ProtocolName, isStream: boolean, place: Place) => void> = {
  refuse({ answer, text, sent }, client, isStream, place) {
    assert.ok(!text.includes(word), text);
    if (isOfPrompt(place)) {
      assert.equal(sent.length, 0);
      if (client === 'gemini') {
        assert.equal(answer.status, 200);
        assert.match(text, /"blockReason":"PROHIBITED_CONTENT"/);
      } else {
        assert.equal(answer.status, 400);
        const error = clients[client].readError(text);
        if (client === 'messages') assert.equal(error.type, 'invalid_request_error');
        else assert.equal(error.code, 'content_policy_violation');
      }
      assert.equal(answer.headers.get('x-gateway-guardrails'), 'refuse=refused(1)');
      return;
    }
    if (!isStream) assert.equal(answer.status, 400, text);
    // A relayed call may have begun: no client reads its arguments.
    else if (place === 'tool arguments') assert.match(text, /not allowed/);
    else if (answer.status === 200) assert.match(seen(client, true, text).error?.message ?? '', /not allowed/);
    else assert.equal(answer.status, 400, text);
  },
  mask({ answer, text, sent }, client, isStream, place) {
    assert.equal(answer.status, 200, text);
    assert.ok(!text.includes(word), text);
    const { error, calls, text: said } = seen(client, isStream, text);
    assert.equal(error, undefined);
    if (isOfPrompt(place)) {
      assert.ok(!sent[0]!.includes(word), String(sent[0]));
      assert.match(sent[0] ?? '', /\[WORD-1\]/);
      assert.equal(answer.headers.get('x-gateway-guardrails')?.startsWith('mask=masked(1)'), true);
    }
    if (place === 'answer') assert.match(said, /^A long story of the \[WORD-1\] in the wood, and of its end\.$/);
    if (place === 'tool arguments') assert.deepEqual(calls[0]!.input, { what: 'the [WORD-1] there' });
  },
  log({ answer, text, sent }, client, isStream, place) {
    assert.equal(answer.status, 200, text);
    const { error, calls, text: said } = seen(client, isStream, text);
    assert.equal(error, undefined);
    if (isOfPrompt(place)) assert.ok(sent[0]!.includes(word));
    if (place === 'answer') assert.ok(said.includes(word));
    if (place === 'tool arguments') assert.deepEqual(calls[0]!.input, { what: `the ${word} there` });
  },
};

/** A refused request reaches no vendor, so one of them stands for all; what is noted alone goes the way of what is not found. */
function isShownElsewhere(client: ProtocolName, vendor: ProtocolName, place: Place, action: Action): boolean {
  if (client === vendor) return false;
  const next = protocolNames[(protocolNames.indexOf(client) + 1) % protocolNames.length];
  return vendor !== next && (action === 'log' || (action === 'refuse' && isOfPrompt(place)));
}

for (const name of protocolNames)
  test(`${name} on ${name}: an answer without a finding keeps the vendor's bytes`, async () => {
    for (const isStream of [false, true]) {
      const [model, play] = [`mask-${name}`, playOf('prompt')];
      const body = isStream ? words[name].stream(play, model).join('') : words[name].whole(play, model);
      const cell = await made(name, name, isStream, 'prompt', 'mask');
      assert.equal(cell.answer.status, 200);
      // The frame of usage, which the gateway itself has asked for, may be withheld.
      const frames = cell.text.split(/(?<=\n\r?\n)/);
      assert.ok(frames.every((frame) => body.includes(frame)) && frames.length > (isStream ? 2 : 0), cell.text);
    }
  });

for (const client of protocolNames)
  for (const vendor of protocolNames)
    test(`${client} on ${vendor}: the forbidden word is refused, masked or noted, whole and streamed, at every place`, async () => {
      for (const isStream of [false, true])
        for (const place of places)
          for (const action of actions) {
            if (isShownElsewhere(client, vendor, place, action)) continue;
            const cell = await made(client, vendor, isStream, place, action);
            try {
              expectations[action](cell, client, isStream, place);
            } catch (error) {
              const name = `${isStream ? 'streamed' : 'whole'}, ${place}, ${action}`;
              throw new Error(
                `${name}: ${(error as Error).message}\n${cell.answer.status} ${cell.text.slice(0, 1_500)}`,
              );
            }
          }
    });
