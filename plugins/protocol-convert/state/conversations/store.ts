/** Kept conversations of each account: in the database where there is one, else in memory. What calls append waits here. */
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { Clock, Log, Random } from '../../../../core/contract/host-tools.ts';
import { isObject, type JsonObject, tryParse } from '../../../../core/json/json.ts';
import type { Database } from '../../../common/domain/database.ts';
import { WriteQueue } from '../writes.ts';
import { ConversationMemory } from './memory.ts';
import {
  type AppendBounds,
  type Block,
  type Bounds,
  boundsFor,
  bytesOf,
  type Conversation,
  type ConversationBackend,
  conversationFull,
  conversationNotFound,
  isOwnConversationId,
  itemsToKeep,
  refuseKnown,
  shareUsed,
} from './record.ts';
import { ConversationRows } from './rows.ts';

/** Memory for blocks that wait for a slow or unavailable database. */
const queueBytes = 64 * 2 ** 20;

export interface ConversationStoreOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly random: Random;
  /** Lifetime after the last change; 0: no conversations are kept. */
  readonly keepMs: number;
  /** Largest conversation. */
  readonly maxBytes: number;
  readonly memoryBytes: number;
}

export class ConversationStore {
  readonly #options: ConversationStoreOptions;
  readonly #bounds: Bounds;
  /** Bounds for answers, which were given and are kept even if they go past the usual bound, up to twice of it. */
  readonly #answerBounds: AppendBounds;
  readonly #queue: WriteQueue<Block>;
  #backend: ConversationBackend;

  constructor(options: ConversationStoreOptions) {
    this.#options = options;
    this.#bounds = boundsFor(options.maxBytes);
    this.#answerBounds = {
      conversationBytes: 2 * this.#bounds.conversationBytes,
      conversationItems: 2 * this.#bounds.conversationItems,
      accountBytes: this.#mostBytes,
    };
    this.#backend = new ConversationMemory(options.memoryBytes);
    this.#queue = new WriteQueue({
      write: (blocks) => this.#write(blocks),
      sizeOf: ({ items }) => 512 + 2 * bytesOf(items),
      what: 'items of conversations',
      log: options.log,
      maxBytes: queueBytes,
    });
  }

  /** Its tables must exist. */
  useDatabase(database: Database): void {
    this.#backend = new ConversationRows(database);
  }

  async create(accountId: string, metadata: string, items: readonly unknown[], name: string): Promise<Conversation> {
    const { clock, keepMs, random } = this.#options;
    if (keepMs === 0)
      throw new GatewayError('unsupported', 'Conversations are not kept here: send everything as "input".');
    const id = `conv_gw${random.bytes(16).toString('hex')}`;
    const createdAt = clock.now();
    const times = { createdAt, expiresAt: createdAt + keepMs };
    const made: Conversation = { id, accountId, metadata, itemCount: 0, bytes: 0, ...times };
    this.#checkSize(made, items, 'items');
    if (!(await this.#ask((backend) => backend.create(made, this.#bounds)))) throw shareUsed();
    if (items.length > 0) await this.#fill(made, items, name);
    return made;
  }

  /** A conversation that cannot hold what it was made with is not there. */
  async #fill(made: Conversation, items: readonly unknown[], name: string): Promise<void> {
    try {
      await this.#append(made, items, name);
    } catch (error) {
      await this.delete(made);
      throw error;
    }
  }

  /** Throws not_found for an id that is unknown, expired, or another account's. What earlier calls append is there. */
  async get(accountId: string, id: string): Promise<Conversation> {
    if (!isOwnConversationId(id)) throw conversationNotFound(id);
    const found = await this.#ask(async (backend) => {
      await this.#queue.flush();
      return backend.find(accountId, id, this.#options.clock.now());
    });
    if (found === undefined) throw conversationNotFound(id);
    return found;
  }

  async items({ accountId, id }: Conversation): Promise<JsonObject[]> {
    const texts = await this.#ask((backend) => backend.items(accountId, id));
    return texts.map((text) => tryParse(text)).filter(isObject);
  }

  /** For a call: the items before its own. Throws invalid_request if its input is there already, or does not fit. */
  async begin(accountId: string, id: string, input: readonly unknown[]): Promise<JsonObject[]> {
    const conversation = await this.get(accountId, id);
    const items = await this.items(conversation);
    refuseKnown(input, idsOf(items), 'input');
    this.#checkSize(conversation, input, 'conversation');
    await this.#checkShare(accountId);
    return items;
  }

  /** Adds items at once; returns them as they are kept. */
  async add(conversation: Conversation, items: readonly unknown[], name: string): Promise<JsonObject[]> {
    refuseKnown(items, idsOf(await this.items(conversation)), 'items');
    this.#checkSize(conversation, items, 'items');
    await this.#checkShare(conversation.accountId);
    return this.#append(conversation, items, name);
  }

  /** When a call has ended. Visible at once in this process, in others when it is written. */
  append(accountId: string, conversationId: string, items: readonly unknown[], name: string): void {
    const { clock, keepMs, log } = this.#options;
    const kept = itemsToKeep(items, name);
    const block = { accountId, conversationId, name, items: kept, expiresAt: clock.now() + keepMs };
    this.#queue.push(`${accountId} ${conversationId} ${name}`, block);
    this.#queue.flush().catch((error: unknown) => log.warn({ error }, 'items of a conversation wait to be written'));
  }

  async setMetadata(conversation: Conversation, metadata: string): Promise<Conversation> {
    const expiresAt = this.#options.clock.now() + this.#options.keepMs;
    const { accountId, id } = conversation;
    await this.#ask((backend) => backend.setMetadata(accountId, id, metadata, expiresAt));
    return { ...conversation, metadata, expiresAt };
  }

  async delete({ accountId, id }: Conversation): Promise<void> {
    await this.#ask((backend) => backend.delete(accountId, id));
  }

  deleteItem({ accountId, id }: Conversation, itemId: string): Promise<boolean> {
    return this.#ask((backend) => backend.deleteItem(accountId, id, itemId));
  }

  get waits(): boolean {
    return this.#queue.waits;
  }

  /** Writes what waits. */
  flush(): Promise<void> {
    return this.#queue.flush();
  }

  deleteExpired(): Promise<void> {
    return this.#backend.deleteExpired(this.#options.clock.now());
  }

  async #append(
    { accountId, id: conversationId }: Conversation,
    items: readonly unknown[],
    name: string,
  ): Promise<JsonObject[]> {
    const now = this.#options.clock.now();
    const kept = itemsToKeep(items, name);
    const block = { accountId, conversationId, name, items: kept, expiresAt: now + this.#options.keepMs };
    const done = await this.#ask((backend) =>
      backend.append(block, now, { ...this.#bounds, accountBytes: this.#mostBytes }),
    );
    if (done === 'gone') throw conversationNotFound(conversationId);
    if (done === 'full') throw conversationFull('items');
    if (done === 'share') throw shareUsed();
    return kept.map(({ text }) => JSON.parse(text) as JsonObject);
  }

  async #write(blocks: readonly Block[]): Promise<void> {
    const { clock, log } = this.#options;
    for (const block of blocks) {
      const done = await this.#backend.append(block, clock.now(), this.#answerBounds);
      const { accountId, conversationId, items } = block;
      if (done === 'full' || done === 'share')
        log.warn(
          { account_id: accountId, conversation: conversationId, items: items.length },
          'a conversation is too large for an answer',
        );
    }
  }

  #checkSize({ bytes, itemCount }: Conversation, items: readonly unknown[], field: string): void {
    const { conversationBytes, conversationItems } = this.#bounds;
    const added = itemCount + items.length;
    if (added > conversationItems || bytes + Buffer.byteLength(JSON.stringify(items)) > conversationBytes)
      throw conversationFull(field);
  }

  /** Bytes of an account, which begins nothing once its share is used up: running answers may fill one conversation more. */
  get #mostBytes(): number {
    return this.#bounds.accountBytes + 2 * this.#bounds.conversationBytes;
  }

  async #checkShare(accountId: string): Promise<void> {
    const used = await this.#ask((backend) => backend.usedBytes(accountId, this.#options.clock.now()));
    if (used > this.#bounds.accountBytes) throw shareUsed();
  }

  async #ask<T>(question: (backend: ConversationBackend) => Promise<T>): Promise<T> {
    try {
      return await question(this.#backend);
    } catch (cause) {
      throw new GatewayError('overloaded', 'Conversations cannot be looked up at the moment; try again later.', {
        code: 'state_unavailable',
        retryAfterMs: 1_000,
        cause,
      });
    }
  }
}

function idsOf(items: readonly JsonObject[]): Set<string> {
  return new Set(items.map(({ id }) => String(id)));
}
