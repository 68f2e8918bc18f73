/** Restricts each account to vendor ids that were issued to it: records ids in answers, checks ids in requests. */

import type { Exchange } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import { caller } from '../../common/domain/accounts.ts';
import { type Pinned, pinned } from '../../common/domain/calls.ts';
import type { Providers, Target } from '../../common/domain/upstreams.ts';
import { refuseIds } from '../../common/wire/named.ts';
import { type CheckedIds, type Opened, opened, type VendorId } from '../../common/wire/protocols.ts';
import type { UsageMeterOptions } from '../../common/wire/usage-meter.ts';
import { invalid } from '../request/checks.ts';
import { earlierIds } from '../request/earlier-ids.ts';
import { hostOf, mostVendorIds, vendorIdsIn } from '../request/vendor-ids.ts';
import type { IssuedIds } from './issued-ids.ts';
import type { IssuedId } from './issued-rows.ts';
import { isStorableId } from './record.ts';

/** Further ids of one answer are not recorded. */
const mostIssued = 500;

export interface IdGuardOptions {
  readonly store: IssuedIds;
  /** Called for each request: providers may be set up later. */
  readonly providers: () => Providers | undefined;
  readonly clock: Clock;
  /** How long an id stays valid; 0: none is recorded. */
  readonly keepMs: number;
}

export class IdGuard {
  readonly #options: IdGuardOptions;

  constructor(options: IdGuardOptions) {
    this.#options = options;
  }

  /**
   * For the opening of a request: looks up its ids when `before` is done, and sets them in `opened`; sets `pinned`
   * where only one key can serve the request.
   */
  check(exchange: Exchange, request: Opened, before: undefined | Promise<void>): undefined | Promise<void> {
    if (before !== undefined) return before.then(() => this.check(exchange, exchange.get(opened), undefined));
    const ids = vendorIdsIn(request.json, { hosts: () => this.#hosts() });
    return ids.length === 0 ? undefined : this.#check(exchange, request, ids);
  }

  async #check(exchange: Exchange, request: Opened, ids: readonly VendorId[]): Promise<void> {
    if (ids.length > mostVendorIds) throw invalid(`The request may name at most ${mostVendorIds} files and the like.`);
    const accountId = accountOf(exchange);
    const storable = new Set(ids.map(({ id }) => id).filter(isStorableId));
    const issued: ReadonlyMap<string, IssuedId> =
      storable.size === 0 ? new Map() : await this.#options.store.find(accountId, storable);
    this.#renew(issued);
    const { json, protocol, decodeWith, keptItems = 0 } = request;
    const earlier = earlierIds(json, (decodeWith ?? protocol).codec.conversation, ids);
    this.#pin(exchange, ids, issued, earlier);
    // Ids that were valid when they were kept may have expired.
    const isKept = (one: VendorId) => earlier.has(one) && placeOf(one) < keptItems;
    const unknown = ids.filter((one) => !issued.has(one.id) && !isKept(one));
    const refused = new Set(unknown.map(({ id }) => id));
    const held = new Map<string, IssuedId | undefined>();
    for (const { id, isEcho } of earlier) if (!isEcho && !refused.has(id)) held.set(id, issued.get(id));
    const known = new Set(issued.keys());
    exchange.set(opened, {
      ...exchange.get(opened),
      vendorIds: { known, unknown, ...(held.size === 0 ? {} : { held }) },
    });
  }

  /** Use renews an id. */
  #renew(issued: ReadonlyMap<string, IssuedId>): void {
    const { clock, keepMs, store } = this.#options;
    const now = clock.now();
    for (const record of issued.values())
      if (record.expiresAt - now < keepMs / 2) store.put({ ...record, expiresAt: now + keepMs });
  }

  /**
   * Objects that one key created are not accessible to other keys. Parts of earlier answers may go to other keys too, and a
   * conversation goes on without what its earlier turns named, where another key has to answer.
   */
  #pin(
    exchange: Exchange,
    ids: readonly VendorId[],
    issued: ReadonlyMap<string, IssuedId>,
    earlier: ReadonlySet<VendorId>,
  ): void {
    let pin = exchange.find(pinned);
    let latest: Pinned | undefined;
    for (const one of ids) {
      const record = one.isEcho ? undefined : issued.get(one.id);
      if (record === undefined) continue;
      const { provider, credential } = record;
      const own: Pinned = { provider, credential, protocol: undefined, field: one.field };
      if (earlier.has(one)) latest = { ...own, isPreferred: true };
      else if (pin === undefined) pin = own;
      else if (pin.provider !== provider || pin.credential !== credential) throw notTogether(one.field);
    }
    const chosen = pin ?? latest;
    if (chosen !== undefined) exchange.set(pinned, chosen);
  }

  /** Throws resource_not_found for an id that must not go to this target. */
  refuse(ids: readonly VendorId[], target: Target): void {
    refuseIds(ids, target);
  }

  /** The same check for a translated request before it is sent: an id may have come from another member. */
  refuseIn(body: JsonObject, { vendorIds }: { readonly vendorIds?: CheckedIds }, target: Target): void {
    if (target.upstream.uncheckedIds?.all === true) return;
    const ids = vendorIdsIn(body, { hosts: () => this.#hosts() });
    if (ids.length === 0) return;
    const requested = new Map(vendorIds?.unknown.map((one) => [one.id, one]));
    const unknown = ids.filter(({ id }) => vendorIds?.known.has(id) !== true);
    this.refuse(
      unknown.map((one) => requested.get(one.id) ?? one),
      target,
    );
  }

  /** For an answer of this target: the function to call with its parts. undefined: nothing is recorded. */
  recording(exchange: Exchange, { vendorIds }: Opened, { provider, credential }: Target): UsageMeterOptions['issued'] {
    const { clock, keepMs, store } = this.#options;
    if (keepMs === 0) return undefined;
    // Both are made at the first id: most answers have none.
    let requested: ReadonlySet<string> | undefined;
    let seen: Set<string> | undefined;
    return (part) => {
      for (const { id } of vendorIdsIn(part, { hosts: () => this.#hosts(), isAnswer: true })) {
        requested ??= new Set(vendorIds?.unknown.map((one) => one.id));
        seen ??= new Set();
        // An answer may repeat ids of the request: that issues none.
        if (requested.has(id) || vendorIds?.known.has(id) === true || seen.has(id) || !isStorableId(id)) continue;
        if (seen.size === mostIssued) return;
        seen.add(id);
        const createdAt = clock.now();
        const accountId = accountOf(exchange);
        store.put({ accountId, id, provider, credential, createdAt, expiresAt: createdAt + keepMs });
      }
    };
  }

  /** Hosts of all running providers. */
  #hosts(): ReadonlySet<string> {
    const hosts = new Set<string>();
    for (const { speaks } of this.#options.providers()?.list() ?? []) {
      for (const protocol of Object.keys(speaks)) {
        const url = addressOf(speaks, protocol);
        if (url !== null) hosts.add(hostOf(url));
      }
    }
    return hosts;
  }
}

/** The address of a vendor inside the process throws while that vendor is not running. */
function addressOf(speaks: Readonly<Record<string, string>>, protocol: string): URL | null {
  try {
    return URL.parse(speaks[protocol]!);
  } catch {
    return null;
  }
}

function accountOf(exchange: Exchange): string {
  return exchange.find(caller)?.accountId ?? '';
}

/** The turn that names it. */
function placeOf({ field }: VendorId): number {
  return Number(/\[(\d+)\]/.exec(field)?.[1] ?? Number.POSITIVE_INFINITY);
}

function notTogether(field: string): GatewayError {
  const message = `What the field "${field}" refers to cannot be used together with the others that the request names.`;
  return new GatewayError('invalid_request', message, { field, code: 'resource_not_found' });
}
