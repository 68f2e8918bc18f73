/** What the API answers on the client's side, as JSON: money is decimal USD text, times are ISO 8601. */

/** Decimal USD, exact. */
export type Usd = string;
/** ISO 8601. */
export type Moment = string;

export interface Page<Row> {
  readonly rows: readonly Row[];
  /** `after` of the next page; null: this was the last. */
  readonly next: string | null;
}

export type Role = 'client' | 'auditor' | 'operator';

export interface Me {
  readonly person: {
    readonly id: string;
    readonly name: string;
    readonly email: string;
    readonly emailVerified: boolean;
    readonly twoFactor: boolean;
  };
  readonly role: Role;
  readonly account: { readonly id: string; readonly name: string; readonly plan: string } | null;
  readonly gateway: string;
  /** Address of the gateway as clients reach it, without a path. */
  readonly baseUrl: string;
  /** Which parts this gateway has. A page whose part is not there is not shown. */
  readonly features: readonly Feature[];
}
export type Feature =
  | 'accounts'
  | 'requests'
  | 'money'
  | 'pool'
  | 'shop'
  | 'tasks'
  | 'upstreams'
  | 'prices'
  | 'config'
  | 'payments';

export interface Info {
  readonly gateway: string;
  readonly signUp: boolean;
  readonly providers: readonly { readonly id: string; readonly name: string }[];
  readonly needsFirstOperator: boolean;
  readonly languages: readonly string[];
}
