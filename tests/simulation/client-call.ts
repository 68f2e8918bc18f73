/** What a client asks of a process, on which terms, and what the world of its call is. */
import type { JsonObject } from '../../core/json/json.ts';
import type { Caller } from '../../plugins/common/domain/accounts.ts';
import type { Call } from '../../plugins/common/domain/calls.ts';
import type { Model } from '../../plugins/common/domain/models.ts';
import type { PlanTerms } from '../../plugins/common/domain/plans.ts';
import type { Beside } from './beside.ts';
import type { Cached } from './cached.ts';
import type { Chance } from './chance.ts';
import type { Marks } from './guarded.ts';
import type { Oracle } from './oracle.ts';
import type { PricedModel } from './profile.ts';
import type { Schedule } from './schedule.ts';
import type { Fraction, PriceList } from './tariff.ts';
import type { VendorProfile } from './vendors.ts';

export interface Setting {
  readonly schedule: Schedule;
  readonly chance: Chance;
  readonly oracle: Oracle;
  readonly vendors: VendorProfile;
  /** The line that the process's journal has come to. */
  readonly line: () => number;
  /** What is read of a request beside its conversation. */
  readonly reads: (json: JsonObject) => JsonObject;
}

/** What the client asks, and on which terms. */
export interface ClientCall {
  readonly caller: Caller;
  readonly plan: PlanTerms;
  readonly model: Model;
  /** What the model's price was made of. */
  readonly price: PriceList;
  /** Another model that serves the call when its own cannot; undefined: none. */
  readonly other: PricedModel | undefined;
  readonly ratio: Fraction | undefined;
  readonly call: Call;
  /** The key that it carries, and the body that decides with it. */
  readonly key: string | undefined;
  /** Who it says that it is; undefined: no one asks here. */
  readonly apiKey: string | undefined;
  readonly body: string;
  /** What its request has beside its conversation; undefined: nothing. */
  readonly beside: Beside | undefined;
  /** The cache has an answer to it; undefined: it has none. */
  readonly cached: Cached | undefined;
  /** What checks are to find in its texts; undefined: there are no checks. */
  readonly marks: Marks | undefined;
  /** The mark of its conversation; undefined: it belongs to none. */
  readonly mark: number | undefined;
  /** More than an answer comes of it; undefined: no one can tell. */
  readonly leavesTraces: boolean | undefined;
  /** The client closes the connection after so long, if the answer is not whole by then. */
  readonly leavesAfterMs: number | undefined;
  /** The gateway gives it up after so long; undefined: it does not come to that. */
  readonly lastsMs: number | undefined;
}
