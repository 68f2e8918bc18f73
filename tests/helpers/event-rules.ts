/** The rules of a canonical answer's events, checked one event at a time. */
import assert from 'node:assert/strict';
import type { Event } from '../../plugins/common/canonical/reply.ts';

export class EventRules {
  /** Kind of each open block, and its choice. */
  readonly #open = new Map<number, { readonly kind: string; readonly choice: number }>();
  readonly #stopped = new Set<number>();
  readonly #spoken = new Set<number>();
  readonly #callIds = new Set<string>();
  #started = false;
  #nextBlock = 0;

  see(event: Event): void {
    if (event.type === 'reply-start') {
      assert.ok(!this.#started, 'the reply starts twice');
      this.#started = true;
      return;
    }
    assert.ok(this.#started, `${event.type} before the start`);
    assert.ok(!this.#stopped.has(event.choice), `${event.type} behind the stop of choice ${event.choice}`);
    this.#spoken.add(event.choice);
    if (event.type === 'stop') this.#stop(event.choice);
    else this.#block(event);
  }

  /** Every choice that said something has ended. */
  end(): void {
    assert.equal(this.#open.size, 0, 'a block is open at the end');
    for (const choice of this.#spoken) assert.ok(this.#stopped.has(choice), `choice ${choice} never stops`);
  }

  #stop(choice: number): void {
    for (const { choice: of } of this.#open.values()) assert.notEqual(of, choice, 'a stop with an open block');
    this.#stopped.add(choice);
  }

  #block(event: Exclude<Event, { type: 'reply-start' | 'stop' }>): void {
    const [kind, part] = event.type.split('-') as [string, string | undefined];
    if (part === 'start' || event.type === 'media' || event.type === 'search') {
      assert.equal(event.block, this.#nextBlock++, 'blocks are numbered as they start');
      if (part === 'start') this.#open.set(event.block, { kind, choice: event.choice });
      if (event.type === 'tool-start') {
        assert.ok(event.id !== '' && event.name !== '', 'a call without id or name');
        assert.ok(!this.#callIds.has(event.id), `two calls with the id ${event.id}`);
        this.#callIds.add(event.id);
      }
      return;
    }
    const open = this.#open.get(event.block);
    assert.ok(open !== undefined && open.choice === event.choice, `${event.type} of a block that is not open`);
    assert.equal(kind === 'citation' ? 'text' : kind, open.kind, event.type);
    if (part === 'end') this.#open.delete(event.block);
  }
}

/** Fails unless these are all events of a legal answer. */
export function assertLegal(events: readonly Event[]): void {
  const rules = new EventRules();
  for (const event of events) rules.see(event);
  rules.end();
}
