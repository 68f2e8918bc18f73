/** What the API answers operators about traffic and accounts, as JSON: money is decimal USD text, times are ISO 8601, absent things are null. */
import type {
  Charge,
  KeyRow,
  LedgerRow,
  Moment,
  Plan,
  Pool,
  RequestRow,
  RequestSums,
  Role,
  TaskRow,
  Usd,
} from '../../api/types.ts';

export type { LedgerRow, Page, Plan, Pool, RequestResult, RequestSums, Role } from '../../api/types.ts';

export interface MoneySums {
  /** null: not known for what was asked. */
  readonly cost: Usd | null;
  readonly ownCost: Usd | null;
}
export interface Monitor extends RequestSums, MoneySums {
  readonly margin: Usd | null;
  readonly from: Moment;
  readonly until: Moment;
}
export interface MonitorSeries {
  readonly bucketMs: number;
  readonly rows: readonly (RequestSums & MoneySums & { readonly at: Moment })[];
}
export type GroupName = 'model' | 'provider' | 'operation' | 'account' | 'key';
export type Group = RequestSums & MoneySums & { readonly group: string };

export interface OperatorRequest extends RequestRow {
  readonly accountId: string | null;
  readonly provider: string | null;
  readonly upstreamModel: string | null;
  readonly upstreamId: string | null;
  readonly ownCost: Usd | null;
}
export interface OperatorAttempt {
  readonly number: number;
  readonly startedAt: Moment;
  readonly result: 'running' | 'not_sent' | 'refused' | 'unknown' | 'answered';
  readonly status: number | null;
  readonly durationMs: number | null;
  readonly provider: string;
  readonly model: string;
  readonly credential: string;
  readonly protocol: string;
  readonly error: string | null;
  readonly absorbed: Usd;
  readonly borneBy: 'client' | 'operator' | null;
}
export interface OperatorCharge extends Charge {
  /** null: not known. */
  readonly ownCost: Usd | null;
}
export interface OperatorStory {
  readonly request: OperatorRequest;
  readonly dropped: readonly string[];
  readonly story: readonly { readonly atMs: number; readonly by: string; readonly text: string }[];
  readonly charge: OperatorCharge | null;
  readonly attempts: readonly OperatorAttempt[];
}
export interface KeptBody {
  readonly text: string;
  readonly mediaType: string | null;
  readonly bytes: number;
  /** How many of them the text does not tell of. */
  readonly leftOut: number;
}
export interface KeptBodies {
  /** null: none were kept, or they have expired. */
  readonly kept: {
    readonly receivedAt: Moment;
    readonly expiresAt: Moment;
    readonly request: KeptBody | null;
    readonly answer: KeptBody | null;
  } | null;
}
export interface Recording {
  readonly id: string;
  readonly accountId: string | null;
  readonly keyId: string | null;
  readonly model: string | null;
  readonly errorsOnly: boolean;
  readonly startedAt: Moment;
  readonly until: Moment;
  readonly by: string;
}
export interface Recordings {
  /** Whether the configuration keeps bodies. */
  readonly keeps: boolean;
  readonly rows: readonly Recording[];
}
export interface OperatorTask extends TaskRow {
  readonly accountId: string;
}

export interface Upstream {
  readonly provider: string;
  readonly protocols: Readonly<Record<string, string>>;
  readonly disabled: boolean;
  readonly keys: readonly {
    readonly credential: string;
    readonly disabled: boolean;
    readonly restsMs: number;
    readonly modelRests: readonly { readonly model: string; readonly restsMs: number }[];
    readonly reason: string | null;
  }[];
  /** Requests at once, and those that wait; null: no bound is set. */
  readonly room: {
    readonly limit: number;
    readonly inFlight: number;
    readonly queue: number;
    readonly waiting: number;
  } | null;
  readonly targets: readonly UpstreamTarget[];
  readonly lastHour: RequestSums | null;
  /** What the calls of the last hour cost the operator. */
  readonly ownCost: Usd | null;
}
/** A vendor's model in the traffic of the process that told it; null times: nothing was measured. */
export interface UpstreamTarget {
  readonly model: string;
  readonly circuit: 'closed' | 'open' | 'half_open';
  readonly opensForMs: number;
  readonly inFlight: number;
  readonly recent: number;
  readonly failed: number;
  readonly firstByteMs: number | null;
  readonly wholeMs: number | null;
  readonly keys: readonly {
    readonly credential: string;
    /** Share of its attempts. */
    readonly answered: number;
    readonly firstByteMs: number | null;
    readonly wholeMs: number | null;
  }[];
}

/** What a vendor can be tested by. */
export interface TestChoice {
  readonly model: string;
  readonly upstreamModel: string;
  readonly protocols: readonly string[];
}
export interface TestResult {
  readonly ok: boolean;
  readonly protocol: string;
  readonly upstreamModel: string;
  /** null: no answer came. */
  readonly status: number | null;
  readonly firstByteMs: number | null;
  readonly totalMs: number;
  readonly error: string | null;
  readonly text: string;
  readonly usage: Readonly<Record<string, number>>;
}

export interface Account {
  readonly id: string;
  readonly name: string;
  readonly plan: string;
  readonly planEndsAt: Moment | null;
  readonly multiplier: string | null;
  readonly disabled: boolean;
  readonly createdAt: Moment;
}
export interface AccountRow extends Account {
  readonly balance: Usd | null;
}
export interface AccountDetail {
  readonly account: Account;
  readonly pool: Pool | null;
  readonly plan: Plan | null;
}
export type AccountKey = Omit<KeyRow, 'spent30d'>;
export type AccountLedgerRow = LedgerRow;
export interface Person {
  readonly id: string;
  readonly email: string;
  readonly name: string;
  readonly role: Role;
  readonly blocked: boolean;
  readonly emailVerified: boolean;
  readonly twoFactor: boolean;
  readonly accountId: string | null;
  readonly createdAt: Moment;
  readonly seenAt: Moment | null;
}
