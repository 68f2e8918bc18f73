/** Conversations that the gateway keeps, and the blocks of items that are appended to them. Pure. */
import { GatewayError } from '../../../../core/contract/errors.ts';
import { isObject, type JsonObject, textOf } from '../../../../core/json/json.ts';
import { keptItems } from '../items.ts';
import { isStorableId } from '../record.ts';

export interface Conversation {
  readonly id: string;
  readonly accountId: string;
  /** JSON text of an object. */
  readonly metadata: string;
  readonly itemCount: number;
  /** Bytes of its items as JSON. */
  readonly bytes: number;
  /** Milliseconds of the wall clock. */
  readonly createdAt: number;
  readonly expiresAt: number;
}

export interface KeptItem {
  readonly id: string;
  /** JSON text of the item, with its id. */
  readonly text: string;
  readonly bytes: number;
}

/** Items that become part of a conversation together: all of them one after the other, and once. */
export interface Block {
  readonly accountId: string;
  readonly conversationId: string;
  /** Its name: unique for each call. */
  readonly name: string;
  readonly items: readonly KeptItem[];
  /** When the conversation expires after this change. */
  readonly expiresAt: number;
}

/** Bounds of one conversation and of all that an account has. */
export interface Bounds {
  readonly conversationBytes: number;
  readonly conversationItems: number;
  readonly accountBytes: number;
  readonly accountConversations: number;
}

export function boundsFor(conversationBytes: number): Bounds {
  return {
    conversationBytes,
    conversationItems: 10_000,
    accountBytes: 64 * conversationBytes,
    accountConversations: 10_000,
  };
}

/** Bounds of one change. */
export type AppendBounds = Pick<Bounds, 'conversationBytes' | 'conversationItems' | 'accountBytes'>;

export type Appended = 'appended' | 'gone' | 'full' | 'share';

const idFormat = /^conv_gw[0-9a-f]{32}$/;

/** Whether an id has the form of the gateway's own; others may be a vendor's. */
export function isOwnConversationId(id: unknown): id is string {
  return typeof id === 'string' && idFormat.test(id);
}

/** Items in the form that is stored. `name`: name of their block, from which ids are made. */
export function itemsToKeep(items: readonly unknown[], name: string): KeptItem[] {
  return keptItems(items, name).map((item, index) => {
    const given = textOf(item['id']);
    return keptItem({ ...item, id: isStorableId(given) ? given : `item_${name}_${index}` });
  });
}

function keptItem(item: JsonObject): KeptItem {
  const text = JSON.stringify(item);
  return { id: item['id'] as string, text, bytes: Buffer.byteLength(text) };
}

/** The items of a block with ids that are new in the conversation: vendors may use one id in several answers. */
export function withNewIds({ items, name }: Block, taken: ReadonlySet<string>): KeptItem[] {
  const used = new Set(taken);
  return items.map((item, index) => {
    const id = used.has(item.id) ? `${item.id.slice(0, 100)}_${name}_${index}` : item.id;
    used.add(id);
    return id === item.id ? item : keptItem({ ...(JSON.parse(item.text) as JsonObject), id });
  });
}

export function bytesOf(items: readonly KeptItem[]): number {
  return items.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Throws invalid_request for an item of the input that the conversation has already. */
export function refuseKnown(items: readonly unknown[], known: ReadonlySet<string>, field: string): void {
  for (const item of items) {
    const id = isObject(item) ? textOf(item['id']) : undefined;
    if (id === undefined || !known.has(id)) continue;
    const message = `The conversation has an item with id '${id.slice(0, 200)}' already. Leave it out.`;
    throw new GatewayError('invalid_request', message, { field, code: 'duplicate_item' });
  }
}

export function conversationNotFound(id: string): GatewayError {
  const message = `Conversation with id '${id.slice(0, 200)}' not found.`;
  return new GatewayError('not_found', message, { field: 'conversation' });
}

export function conversationFull(field: string): GatewayError {
  const message = 'The conversation would be larger than conversations may be. Begin another one.';
  return new GatewayError('invalid_request', message, { field, code: 'conversation_full', shouldRetry: false });
}

export function shareUsed(): GatewayError {
  const message = 'The conversations of this account take up its share. Delete some of them.';
  return new GatewayError('invalid_request', message, { code: 'conversations_full', shouldRetry: false });
}

export interface ConversationBackend {
  /** false: the account's share is used up. */
  create(conversation: Conversation, bounds: Bounds): Promise<boolean>;
  find(accountId: string, id: string, now: number): Promise<Conversation | undefined>;
  /** Bytes of all conversations of the account. */
  usedBytes(accountId: string, now: number): Promise<number>;
  /** As JSON texts, in their order. */
  items(accountId: string, id: string): Promise<readonly string[]>;
  setMetadata(accountId: string, id: string, metadata: string, expiresAt: number): Promise<void>;
  delete(accountId: string, id: string): Promise<void>;
  append(block: Block, now: number, most: AppendBounds): Promise<Appended>;
  deleteItem(accountId: string, id: string, itemId: string): Promise<boolean>;
  deleteExpired(now: number): Promise<void>;
}
