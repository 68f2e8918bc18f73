/** Conversations of a gateway without a database: in memory, the ones used longest ago are dropped first. */
import { LRUCache } from 'lru-cache';
import {
  type AppendBounds,
  type Appended,
  type Block,
  type Bounds,
  bytesOf,
  type Conversation,
  type ConversationBackend,
  type KeptItem,
  withNewIds,
} from './record.ts';

interface Held {
  readonly conversation: Conversation;
  readonly items: readonly KeptItem[];
  readonly blocks: ReadonlySet<string>;
}

const keyOf = (accountId: string, id: string) => `${accountId} ${id}`;

export class ConversationMemory implements ConversationBackend {
  readonly #held: LRUCache<string, Held>;

  constructor(memoryBytes: number) {
    this.#held = new LRUCache<string, Held>({
      maxSize: memoryBytes,
      sizeCalculation: ({ conversation, items }) =>
        1_024 + 2 * (conversation.metadata.length + conversation.bytes) + 256 * items.length,
    });
  }

  async create(made: Conversation, { accountBytes, accountConversations }: Bounds): Promise<boolean> {
    const own = this.#of(made.accountId, made.createdAt);
    if (own.length >= accountConversations || sumOf(own) > accountBytes) return false;
    this.#held.set(keyOf(made.accountId, made.id), { conversation: made, items: [], blocks: new Set() });
    return true;
  }

  async find(accountId: string, id: string, now: number): Promise<Conversation | undefined> {
    return this.#alive(accountId, id, now)?.conversation;
  }

  async usedBytes(accountId: string, now: number): Promise<number> {
    return this.#used(accountId, now);
  }

  #used(accountId: string, now: number): number {
    return sumOf(this.#of(accountId, now));
  }

  async items(accountId: string, id: string): Promise<string[]> {
    return this.#held.get(keyOf(accountId, id))?.items.map(({ text }) => text) ?? [];
  }

  async setMetadata(accountId: string, id: string, metadata: string, expiresAt: number): Promise<void> {
    const key = keyOf(accountId, id);
    const held = this.#held.get(key);
    if (held !== undefined)
      this.#held.set(key, { ...held, conversation: { ...held.conversation, metadata, expiresAt } });
  }

  async delete(accountId: string, id: string): Promise<void> {
    this.#held.delete(keyOf(accountId, id));
  }

  async append(block: Block, now: number, most: AppendBounds): Promise<Appended> {
    const held = this.#alive(block.accountId, block.conversationId, now);
    if (held === undefined) return 'gone';
    if (held.blocks.has(block.name)) return 'appended';
    const items = [...held.items, ...withNewIds(block, new Set(held.items.map(({ id }) => id)))];
    if (bytesOf(items) > most.conversationBytes || items.length > most.conversationItems) return 'full';
    const added = bytesOf(items) - held.conversation.bytes;
    if (this.#used(block.accountId, now) + added > most.accountBytes) return 'share';
    this.#set({ ...held.conversation, expiresAt: block.expiresAt }, items, new Set(held.blocks).add(block.name));
    return 'appended';
  }

  async deleteItem(accountId: string, id: string, itemId: string): Promise<boolean> {
    const held = this.#held.get(keyOf(accountId, id));
    const items = held?.items.filter((item) => item.id !== itemId) ?? [];
    if (held === undefined || items.length === held.items.length) return false;
    this.#set(held.conversation, items, held.blocks);
    return true;
  }

  async deleteExpired(now: number): Promise<void> {
    for (const [key, { conversation }] of this.#held) if (conversation.expiresAt <= now) this.#held.delete(key);
  }

  #set(conversation: Conversation, items: readonly KeptItem[], blocks: ReadonlySet<string>): void {
    this.#held.set(keyOf(conversation.accountId, conversation.id), {
      conversation: { ...conversation, itemCount: items.length, bytes: bytesOf(items) },
      items,
      blocks,
    });
  }

  #alive(accountId: string, id: string, now: number): Held | undefined {
    const held = this.#held.get(keyOf(accountId, id));
    return held !== undefined && held.conversation.expiresAt > now ? held : undefined;
  }

  #of(accountId: string, now: number): Conversation[] {
    const all = [...this.#held.values()].map(({ conversation }) => conversation);
    return all.filter((one) => one.accountId === accountId && one.expiresAt > now);
  }
}

function sumOf(conversations: readonly Conversation[]): number {
  return conversations.reduce((sum, { bytes }) => sum + bytes, 0);
}
