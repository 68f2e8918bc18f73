/** What an upstream's connection is sent of a turn: nothing of a conversation is lost, added or sent to another one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type KnownConversation, turnMessage } from '../../../plugins/websockets/upstream/turn-message.ts';
import { fc } from '../../helpers/properties.ts';

interface Item {
  readonly type: string;
  readonly [name: string]: unknown;
}

const plain = { noNullPrototype: true };
const text = fc.string({ unit: 'grapheme', maxLength: 20 });
const message = fc.record({ type: fc.constant('message'), role: fc.constant('user'), content: text }, plain);
const output = fc.oneof(
  fc.record({ type: fc.constant('message'), role: fc.constant('assistant'), content: text }, plain),
  fc.record({ type: fc.constant('function_call'), call_id: text, name: fc.constant('f'), arguments: text }, plain),
  // Reasoning that is stored nowhere is not sent again.
  fc.record({ type: fc.constant('reasoning'), summary: fc.constant([]) }, plain),
);
const turn = fc.record({
  added: fc.array(message, { maxLength: 3 }),
  output: fc.array(output, { maxLength: 3 }),
  /** What the client does with what was before. */
  before: fc.constantFrom('kept', 'kept', 'kept', 'changed', 'dropped', 'shortened'),
});

const isSentAgain = ({ type }: Item) => type !== 'reasoning';

/** As a vendor has it: what its connection holds under an id, and what a message adds. */
class Upstream {
  readonly #held = new Map<string, readonly Item[]>();

  conversationOf(data: Buffer): readonly Item[] {
    const { previous_response_id: id, input, type } = JSON.parse(data.toString());
    assert.equal(type, 'response.create');
    if (id === undefined) return input;
    const held = this.#held.get(id);
    assert.ok(held !== undefined, 'an id of another connection');
    return [...held, ...input];
  }

  hold(id: string, items: readonly Item[]): void {
    this.#held.clear();
    this.#held.set(id, items);
  }
}

test('the upstream has exactly the conversation that the client has sent, whatever the client changes', () => {
  let continuations = 0;
  const run = (turns: readonly { added: Item[]; output: Item[]; before: string }[]) => {
    const upstream = new Upstream();
    let known: KnownConversation | undefined;
    let items: Item[] = [];
    turns.forEach(({ added, output: answered, before }, index) => {
      if (before === 'dropped') items = [];
      if (before === 'shortened') items = items.slice(0, -1);
      if (before === 'changed') items = items.map((item, at) => (at === 0 ? { ...item, content: 'changed' } : item));
      const isContinued = before === 'kept' && items.length > 0;
      items = [...items, ...added];
      const body = JSON.stringify({ model: 'm', stream: true, store: false, input: items });
      const sent = turnMessage(Buffer.from(body), known);
      assert.ok(!('stream' in JSON.parse(sent.data.toString())));
      const got = upstream.conversationOf(sent.data);
      assert.deepEqual(got.filter(isSentAgain), items);
      if (sent.isContinuation) continuations += 1;
      if (isContinued) assert.equal(sent.isContinuation, true);
      const id = `resp_${index}`;
      upstream.hold(id, [...got, ...answered]);
      known = sent.knownAfter(JSON.stringify({ type: 'response.completed', response: { id, output: answered } }));
      items = [...items, ...answered.filter(isSentAgain)];
    });
  };
  fc.assert(fc.property(fc.array(turn, { minLength: 1, maxLength: 6 }), run), { numRuns: 500 });
  assert.ok(continuations > 100);
});

test('a turn that refers to a stored item is sent unchanged, and nothing is known after it', () => {
  const known = { id: 'resp_1', digest: '', bytes: 0 };
  for (const reference of [{ previous_response_id: 'resp_0' }, { conversation: 'conv_1' }]) {
    const body = { model: 'm', input: [{ type: 'message', role: 'user', content: 'x' }], ...reference };
    const sent = turnMessage(Buffer.from(JSON.stringify({ ...body, stream: true })), known);
    assert.deepEqual(JSON.parse(sent.data.toString()), { ...body, type: 'response.create' });
    assert.equal(sent.isContinuation, false);
    assert.equal(sent.knownAfter('{"type":"response.completed","response":{"id":"resp_2","output":[]}}'), undefined);
  }
});
