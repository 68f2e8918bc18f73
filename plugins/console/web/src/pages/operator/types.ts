/** What the API answers operators about traffic, vendors, accounts and people, by its own types. */
import type { Answer, Routes, RowOf } from '../../api/types.ts';

export type { LedgerRow, Page, Plan, Pool, RequestResult } from '../../api/types.ts';

export type Admin = Routes['admin'];
export type Monitor = Answer<Admin['monitor']['$get']>;
export type MonitorSeries = Answer<Admin['monitor']['series']['$get']>;
export type Group = RowOf<Answer<Admin['monitor']['groups']['$get']>>;
export type DurationRow = RowOf<Answer<Admin['monitor']['durations']['$get']>>;
export type ComparedVendor = RowOf<Answer<Admin['monitor']['vendors']['$get']>>;
export type FailureCauses = Answer<Admin['monitor']['causes']['$get']>;
export type CauseRow = RowOf<FailureCauses>;
export type GroupName = 'model' | 'provider' | 'operation' | 'account' | 'key' | 'project';

export type OperatorRequest = RowOf<Answer<Admin['requests']['$get']>>;
export type OperatorStory = Answer<Admin['requests'][':id']['$get']>;
export type OperatorAttempt = OperatorStory['attempts'][number];
export type OperatorCharge = NonNullable<OperatorStory['charge']>;
export type KeptBodies = Answer<Admin['requests'][':id']['bodies']['$get']>;
export type KeptBody = NonNullable<NonNullable<KeptBodies['kept']>['request']>;
export type Recordings = Answer<Admin['recordings']['$get']>;
export type Recording = RowOf<Recordings>;
export type AccountNotices = Answer<Admin['accounts'][':id']['notices']['$get']>;
export type UsualNotices = Answer<Admin['notices']['$get']>;
export type Alert = RowOf<Answer<Admin['alerts']['$get']>>;
export type AlertSink = RowOf<Answer<Admin['alerts']['sinks']['$get']>>;
export type AlertRule = RowOf<Answer<Admin['alerts']['rules']['$get']>>;
export type AlertTrial = RowOf<Answer<Admin['alerts']['rules'][':name']['test']['$post']>>;
export type OperatorFile = RowOf<Answer<Admin['files']['$get']>>;
export type OperatorFileDetail = Answer<Admin['files'][':id']['$get']>;
export type OperatorBatch = RowOf<Answer<Admin['batches']['$get']>>;
export type OperatorBatchStory = Answer<Admin['batches'][':id']['$get']>;
export type OperatorTask = RowOf<Answer<Admin['tasks']['$get']>>;

export type Upstream = RowOf<Answer<Admin['upstreams']['$get']>>;
export type UpstreamTarget = Upstream['targets'][number];
export type TestChoice = RowOf<Answer<Admin['upstreams'][':provider']['choices']['$get']>>;
export type TestResult = Answer<Admin['upstreams'][':provider']['test']['$post']>;

export type VendorSecret = RowOf<Answer<Admin['secrets']['$get']>>;
export type VendorAnswer = Answer<Admin['vendors']['test']['$post']>;
export type ListedModel = VendorAnswer['models'][number];

export type AccountRow = RowOf<Answer<Admin['accounts']['$get']>>;
export type AccountDetail = Answer<Admin['accounts'][':id']['$get']>;
export type Account = AccountDetail['account'];
export type AccountKey = RowOf<Answer<Admin['accounts'][':id']['keys']['$get']>>;
export type AccountMember = RowOf<Answer<Admin['accounts'][':id']['members']['$get']>>;
export type ProjectRow = RowOf<Answer<Admin['projects']['$get']>>;
export type Person = RowOf<Answer<Admin['people']['$get']>>;
export type SignInProvider = RowOf<Answer<Admin['sign-in']['$get']>>;
