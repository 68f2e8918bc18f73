/** What the API answers, by its own types: money is decimal USD text, times are ISO 8601, absent things are null. */
import type { hc, InferResponseType } from 'hono/client';
import type { Api } from '../../../api/index.ts';

export type Routes = ReturnType<typeof hc<Api>>;
/** The answer of a route. */
export type Answer<Route> = Route extends (...input: never[]) => unknown ? InferResponseType<Route, 200> : never;
type Get<Name extends keyof Routes> = Routes[Name] extends { $get: infer Route } ? Answer<Route> : never;
/** A row of a list's answer. */
export type RowOf<List> = List extends { readonly rows: readonly (infer Row)[] } ? Row : never;

/** Decimal USD, exact. */
export type Usd = string;
/** ISO 8601. */
export type Moment = string;

export interface Page<Row> {
  readonly rows: readonly Row[];
  /** `after` of the next page; null: this was the last. */
  readonly next: string | null;
}

export type Me = Get<'me'>;
export type Role = Me['role'];
/** The features of this gateway. Pages of absent features are hidden. */
export type Feature = keyof Me['features'];
export type Person = NonNullable<Me['person']>;
export type Info = Get<'info'>;

export type Home = Get<'home'>;
export type Pool = NonNullable<Home['pool']>;
export type Grant = Pool['grants'][number];
export type SpendWindow = Pool['windows'][number];
export type WindowName = SpendWindow['name'];
export type LedgerRow = RowOf<Answer<Routes['wallet']['ledger']['$get']>>;
export type Plan = RowOf<Answer<Routes['wallet']['plans']['$get']>>;
export type Redemption = Answer<Routes['wallet']['redeem']['$post']>;
export type Purchase = Answer<Routes['wallet']['plans'][':name']['$post']>;
export type StatementRow = RowOf<Get<'statements'>>;
export type StatementDetail = Answer<Routes['statements'][':number']['$get']>;
export type CreditLineAnswer = Get<'credit-line'>;
export type CreditMonthRow = NonNullable<CreditLineAnswer['line']>['months'][number];
export type PaymentPage = Get<'payments'>;

export type MemberRow = RowOf<Get<'members'>>;
export type MemberRole = MemberRow['role'];
export type MemberInvitation = RowOf<Answer<Routes['members']['invitations']['$get']>>;
export type CompanySignIn = Answer<Routes['members']['sign-in']['$get']>;
export type MemberActRow = RowOf<Answer<Routes['members']['audit']['$get']>>;
export type BudgetRow = RowOf<Get<'budgets'>>;
export type ProjectRow = RowOf<Get<'projects'>>;
export type KeyRow = RowOf<Get<'keys'>>;
export type CapPeriod = NonNullable<KeyRow['cap']>['every'];
/** The terms of a key, as a form sends them. */
export interface KeyTerms extends Pick<KeyRow, 'name' | 'project' | 'cap' | 'expiresAt' | 'images'> {
  readonly models: readonly string[] | null;
  readonly addresses: readonly string[] | null;
  readonly limits: KeyRow['limits'];
  readonly tags: readonly string[] | null;
  readonly regions: readonly string[] | null;
}
export type NewKey = Answer<Routes['keys']['$post']>;
export type RotatedKey = Answer<Routes['keys'][':id']['rotate']['$post']>;

export type RequestRow = RowOf<Get<'usage'>>;
export type RequestStory = Answer<Routes['usage'][':id']['$get']>;
export type CachedTokens = Answer<Routes['usage']['cached']['$get']>;
export type AnswerCache = Answer<Routes['usage']['answer-cache']['$get']>;
export type ComparedModel = RowOf<Answer<Routes['models']['comparison']['$get']>>;
export type Notices = Get<'notices'>;
export type NoticeKind = Notices['kinds'][number];
export type NoticeChannel = NoticeKind['channels'][number];
export type SavedView = RowOf<Get<'views'>>;
export type OwnBody = Answer<Routes['usage'][':id']['body']['$get']>['request'];
export type Charge = NonNullable<RequestStory['charge']>;
export type UsageSums = Answer<Routes['usage']['sums']['$get']>;
export type UsageChoices = Answer<Routes['usage']['choices']['$get']>;
export type TagSums = Answer<Routes['usage']['tags']['$get']>;
export type Activity = Answer<Routes['usage']['activity']['$get']>;
export type ActivityBucket = Activity['all'][number];
export type RequestSums = Pick<UsageSums, 'requests' | 'results' | 'firstByte' | 'total'>;
export type RequestResult = keyof RequestSums['results'];

export type ModelRow = RowOf<Get<'models'>>;
export type OrderQuote = Answer<Routes['models']['quote']['$get']>;
export type PublicModel = RowOf<Answer<Routes['public']['models']['$get']>>;
export type PublicStatus = Answer<Routes['public']['status']['$get']>;
export type PriceSheet = NonNullable<ModelRow['prices']>;
export type PriceLine = PriceSheet['lines'][number];
export type TaskRow = RowOf<Get<'tasks'>>;
export type TaskDetail = Answer<Routes['tasks'][':id']['$get']>;
export type TaskState = TaskRow['state'];

export type FileRow = RowOf<Get<'files'>>;
export type BatchRow = RowOf<Get<'batches'>>;
export type BatchCheck = Answer<Routes['batches']['check']['$post']>;
