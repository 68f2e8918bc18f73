/** The codes of errors that clients get: the kind of each, which decides the status, what it means and what to do. */
import type { ErrorKind } from '../../core/contract/errors.ts';
import { table } from '../../core/contract/table.ts';

export interface ErrorCode {
  readonly kinds: readonly ErrorKind[];
  readonly meaning: string;
  readonly cure: string;
}

const of = (kinds: ErrorKind | readonly ErrorKind[], meaning: string, cure: string): ErrorCode => ({
  kinds: [kinds].flat() as readonly ErrorKind[],
  meaning,
  cure,
});

const waits = 'Repeat after `retry-after`.';
const operator = 'Repeat later; if it lasts, the operator looks at `/readyz` and the log.';

export const errorCodes: Readonly<Record<string, ErrorCode>> = table({
  account_disabled: of('forbidden', 'The account of the key is disabled.', 'Ask the operator to enable it.'),
  address_not_allowed: of(
    'forbidden',
    'The key is bound to other addresses.',
    'Call from an address of the key, or change the addresses in the console.',
  ),
  admission_unavailable: of('overloaded', 'A rule of the operator could not be asked.', waits),
  answer_too_large: of(
    'upstream_failed',
    'A text of the answer is too large to be checked by the rules of the operator.',
    'Ask for a shorter answer.',
  ),
  auth_tokens: of(
    'rate_limited',
    'The account has too many short-lived tokens.',
    'Use them, or wait until they expire.',
  ),
  balance_unavailable: of('overloaded', 'The balance cannot be read at the moment.', waits),
  batch_not_found: of(
    'not_found',
    'There is no such batch of this account.',
    'Check the id; ended batches are listed for a limited time.',
  ),
  batches: of(
    'rate_limited',
    'The account has as many open batches as it may.',
    'Wait until one has ended, or cancel one.',
  ),
  client_secrets: of(
    'rate_limited',
    'The account has too many short-lived keys.',
    'Use them, or wait until they expire.',
  ),
  compaction_failed: of(
    'upstream_failed',
    'The model gave no whole summary of the conversation.',
    'Repeat the request.',
  ),
  compressed_requests: of('rate_limited', 'Too many compressed bodies wait to be unpacked.', waits),
  content_filter: of(
    'invalid_request',
    'The vendor’s content rules refuse the request.',
    'Change the content; a repetition is refused again.',
  ),
  content_policy_violation: of(
    'invalid_request',
    'A check of the operator does not allow the content.',
    'Change the content; the message may say more.',
  ),
  control_frames: of('rate_limited', 'A WebSocket sent too many pings.', 'Ping less often.'),
  conversation_full: of(
    'invalid_request',
    'The conversation has as many items as it may.',
    'Begin another conversation.',
  ),
  conversations_full: of('invalid_request', 'The account has as many conversations as it may.', 'Delete some.'),
  duplicate_item: of(
    'invalid_request',
    'The conversation has an item with this id.',
    'Leave the item out, or give it another id.',
  ),
  failed_attempts: of(
    'rate_limited',
    'Too many wrong keys came from this address.',
    'Correct the key, then wait for `retry-after`.',
  ),
  file_exists: of('conflict', 'There is a file of this name.', 'Choose another name.'),
  file_not_found: of(
    'not_found',
    'There is no such file of this account.',
    'Upload it again; files are kept for a limited time.',
  ),
  file_space_used_up: of('forbidden', 'The files of the account fill its space.', 'Delete files.'),
  files: of('rate_limited', 'Too many files are being sent.', waits),
  forms: of('rate_limited', 'Too many forms with sound are under way.', waits),
  guardrail_not_applicable: of(
    'forbidden',
    'The rules of the operator cannot be applied to this operation.',
    'Use another operation, or ask the operator to allow it unchecked.',
  ),
  guardrail_unavailable: of('overloaded', 'A check of the operator could not judge the content.', waits),
  idempotency_answer_lost: of(
    'conflict',
    'The first call under this key ran, and its answer was not kept.',
    'Do not repeat it; the header names the first request.',
  ),
  idempotency_in_progress: of('conflict', 'The first call under this key still runs.', waits),
  idempotency_key_reused: of(
    'conflict',
    'The key was used for another request.',
    'Use another key for another request.',
  ),
  idempotency_unavailable: of('overloaded', 'The database of keyed calls is away.', waits),
  image_unfinished: of(
    'upstream_timeout',
    'The image was not ready in time.',
    'Ask for the task that the header names.',
  ),
  insufficient_balance: of(
    'insufficient_balance',
    'The balance does not cover the call.',
    'Top up, or lower `max_tokens`.',
  ),
  budget_reached: of(
    'insufficient_balance',
    'A budget that the call lies in is used up.',
    'Wait for its next period, or ask for a larger one.',
  ),
  budget_unavailable: of('overloaded', 'What is left of a budget cannot be read at the moment.', waits),
  invalid_api_key: of(
    'unauthenticated',
    'The key is missing, wrong, revoked or expired.',
    'Send a valid key, whole, in a header that the gateway reads.',
  ),
  invalid_client_secret: of('unauthenticated', 'The short-lived key is wrong or has expired.', 'Get another one.'),
  invalid_jwt: of('unauthenticated', 'The token of another system is not taken.', 'Read why, and get another one.'),
  invalid_reference: of(
    'invalid_request',
    'A file that the order refers to cannot be used.',
    'Give a public address, or the bytes.',
  ),
  invalid_tags: of('invalid_request', 'The key does not take these tags.', 'Send the tags that the key allows.'),
  invalid_text: of('invalid_request', 'A text has a character that cannot be stored.', 'Remove NUL characters.'),
  invalid_token: of('unauthenticated', 'The short-lived token is wrong or has expired.', 'Get another one.'),
  journal_unavailable: of('overloaded', 'Charges cannot be recorded at the moment.', operator),
  key_cap_reached: of(
    'insufficient_balance',
    'The key has spent its cap.',
    'Raise the cap, or wait for its next period.',
  ),
  key_spend_unavailable: of('overloaded', 'What the key has spent cannot be read at the moment.', waits),
  keys_unavailable: of('overloaded', 'Keys cannot be looked up at the moment.', waits),
  last_owner: of('conflict', 'The last owner of an account would go.', 'Make somebody else an owner first.'),
  media_not_fetched: of(
    'invalid_request',
    'An image or file could not be fetched from its address.',
    'Give a public address that answers, or the bytes.',
  ),
  message_bytes: of('rate_limited', 'Messages of WebSockets take too much memory.', waits),
  model_cannot_change: of('invalid_request', 'A running session cannot change its model.', 'Open another session.'),
  model_kind: of(
    'invalid_request',
    'The model does not do what this address does.',
    'Choose a model of the right kind from `GET /v1/models`.',
  ),
  model_not_allowed: of(
    'forbidden',
    'The key, its project or the plan does not allow the model.',
    'Choose an allowed model, or another key or plan.',
  ),
  model_not_found: of('not_found', 'There is no such model here.', 'Choose one from `GET /v1/models`.'),
  model_not_priced: of(
    ['unsupported', 'not_found'],
    'The model has no price for what the request asks.',
    'Choose another model; the operator adds a price.',
  ),
  model_out_of_service: of(
    'overloaded',
    'The operator has taken every vendor of the model out of use.',
    'Choose another model.',
  ),
  mutually_exclusive_parameters: of('invalid_request', 'Two parameters exclude each other.', 'Leave one of them out.'),
  no_content: of('not_found', 'The task has no file yet.', 'Ask again when the task has ended.'),
  not_connected: of('upstream_failed', 'A server of tools could not be connected.', 'Connect it again later.'),
  no_search_engine: of(
    'not_found',
    'The gateway has no search engine.',
    'Ask the operator, who sets one by `web-search`.',
  ),
  search_failed: of('upstream_failed', 'The search engine gave no results that can be read.', 'Repeat later.'),
  search_timeout: of('upstream_timeout', 'The search engine did not answer in time.', 'Repeat later.'),
  no_tools: of('invalid_request', 'The named server has no tool that the key may use.', '`POST /mcp` lists them.'),
  not_metered: of(
    'invalid_request',
    'The request asks for something whose use could not be measured.',
    'Leave out the named field.',
  ),
  order_unknown: of(
    'overloaded',
    'Whether the order was taken is not known.',
    'Look for the task before you order again.',
  ),
  organization_key: of(
    'forbidden',
    'The key administers an organization, and calls nothing.',
    'Call with another key.',
  ),
  organization_key_required: of(
    'forbidden',
    'The address takes keys of an organization alone.',
    'Make one: `keys create --access organization`, or by the API of the console.',
  ),
  other_model: of('invalid_request', 'The object belongs to another model.', 'Name that model.'),
  outcome_unknown: of(
    'internal',
    'A line of a batch may have run when its process ended.',
    'Check before you send it again.',
  ),
  plan_window_used_up: of(
    'insufficient_balance',
    'The plan’s money for this window is spent.',
    'Wait until the named window frees, or top up.',
  ),
  previous_response_not_found: of(
    'invalid_request',
    'The response to continue is not kept.',
    'Send the whole conversation.',
  ),
  project_archived: of(
    ['forbidden', 'conflict'],
    'The project of the key is archived.',
    'Restore the project, or use a key of another one.',
  ),
  protocol_unsupported: of(
    'unsupported',
    'No vendor of the model takes this address or field.',
    'Use another address or model.',
  ),
  reference_used: of('conflict', 'The reference of this credit was used for another one.', 'Use another reference.'),
  refund_too_high: of('conflict', 'The refund is more than what was charged.', 'Refund at most the rest.'),
  request_bytes: of('rate_limited', 'Bodies of requests take too much memory.', waits),
  resource_not_found: of(
    'invalid_request',
    'A file, container or conversation is not known to this account.',
    'Use an id that this account got here.',
  ),
  restore_not_accepted: of(
    'overloaded',
    'The database was put back to an earlier time.',
    'Repeat later; the operator runs `audit --accept-restore`.',
  ),
  result_not_fetched: of(
    'upstream_failed',
    'The result could not be fetched from the vendor.',
    'Order it again; nothing was charged.',
  ),
  result_unusable: of(
    'upstream_failed',
    'The vendor’s result is no usable file.',
    'Order it again; nothing was charged.',
  ),
  role_not_included: of(
    'forbidden',
    "The person's role in the account does not include this.",
    'Ask an owner or an admin of the account.',
  ),
  run_budget: of('insufficient_balance', 'The budget of the run does not cover its next step.', 'Raise `budget`.'),
  run_concurrency: of('rate_limited', 'The account has too many runs with tools at once.', waits),
  run_not_found: of('not_found', 'No step of such a run was charged.', 'Use the `x-request-id` of its answer.'),
  service_not_priced: of('invalid_request', 'The service tier has no price here.', 'Leave out `service_tier`.'),
  session_ended: of('upstream_failed', 'The model has ended the session.', 'Open another session.'),
  session_expired: of('invalid_request', 'The session has been open for as long as it may.', 'Open another session.'),
  state_unavailable: of('overloaded', 'Kept conversations cannot be read at the moment.', waits),
  storage_failed: of('overloaded', 'The file could not be stored.', operator),
  storage_full: of('overloaded', 'There is no room for files.', operator),
  store_unavailable: of('overloaded', 'The database is away.', waits),
  task_deleted: of('conflict', 'The task was deleted while its result was awaited.', 'Order again.'),
  task_not_cancellable: of('conflict', 'The task has ended, or its vendor cannot cancel.', 'Ask for its result.'),
  task_not_found: of(
    'not_found',
    'There is no such task of this account.',
    'Check the id; tasks are kept for a limited time.',
  ),
  token_not_admitted: of('forbidden', 'The account or person of the token is not here.', 'Ask the operator.'),
  too_many_entries: of('invalid_request', 'The request has more inputs than it may.', 'Send fewer at once.'),
  too_many_files: of('forbidden', 'The account has as many files as it may.', 'Delete files.'),
  too_many_queued_turns: of(
    'rate_limited',
    'Too many turns wait on the connection.',
    'Wait for an answer before the next turn.',
  ),
  tool_input_too_large: of(
    'upstream_failed',
    'The model wrote an input of a tool that is too large.',
    'Repeat the request.',
  ),
  tool_not_priced: of(
    'invalid_request',
    'The vendor’s tool has no price here.',
    'Leave the tool out; the operator adds a price.',
  ),
  unknown_url: of('not_found', 'There is nothing at this address.', 'Compare the address with `GET /openapi.json`.'),
  unsupported: of(['not_found', 'invalid_request'], 'This gateway does not offer it.', 'Leave it out.'),
  unsupported_by_model: of(
    'invalid_request',
    'The model does not take the named field or value.',
    'Change the field, or choose another model.',
  ),
  upload_not_found: of('not_found', 'There is no such upload of this account.', 'Begin it again.'),
  uploads: of('rate_limited', 'Too many uploads are under way.', waits),
  upstream: of('rate_limited', 'The vendor takes no more requests for now.', waits),
  upstream_busy: of('overloaded', 'The vendor is overloaded.', waits),
  upstream_connections: of('overloaded', 'Too many requests are under way at the vendor.', waits),
  upstream_refused: of(
    'upstream_failed',
    'The vendor has refused the call.',
    'Repeat once; then choose another model.',
  ),
  websocket_connection_limit_reached: of(
    'invalid_request',
    'The connection has been open for as long as it may.',
    'Open another connection.',
  ),
  websockets: of('rate_limited', 'Too many WebSockets are open.', 'Close some, or wait.'),
  // Limits of plans and keys, by what they count.
  tool_concurrency: of(
    'rate_limited',
    'The account has too many requests to tools running at once.',
    'Wait for one to end, and repeat after `retry-after`.',
  ),
  unknown_bundle: of(
    'not_found',
    'There is no bundle of tools at this address.',
    'Ask the operator for the name, or use `/mcp` for all tools of the key.',
  ),
  rpm: of('rate_limited', 'More requests in a minute than the plan or key allows.', waits),
  rpd: of('rate_limited', 'More requests in a day than the plan or key allows.', waits),
  tpm: of('rate_limited', 'More tokens in a minute than the plan or key allows.', waits),
  concurrency: of(
    'rate_limited',
    'More calls at once than the plan or key allows.',
    'Wait until one of them has ended.',
  ),
  context_length_exceeded: of(
    'invalid_request',
    'The prompt is longer than the model takes.',
    'Shorten it, or choose a model with a longer context.',
  ),
});
