/** Placeholders that outlive their call: of conversations that go on by an id, and of lines that a vendor's batch makes. */
import type { Exchange, Host } from '../../../core/contract/contract.ts';
import { isObject, textOf } from '../../../core/json/json.ts';
import { caller } from '../../common/domain/accounts.ts';
import { keptForAnswer, vendorBatch } from '../../common/domain/calls.ts';
import type { Opened } from '../../common/wire/protocols.ts';
import type { GuardedCall } from '../guarded-call.ts';
import type { VerdictRows } from '../rows.ts';

/** Before the request is checked; and again before the last bytes of its answer are sent, as the client may go on at once. */
export async function recalled(
  exchange: Exchange,
  call: GuardedCall,
  request: Opened,
  rows: VerdictRows,
  host: Pick<Host, 'clock' | 'random'>,
): Promise<void> {
  const accountId = exchange.find(caller)?.accountId;
  const mayRestore = call.checks.some(({ settings }) => settings.restore);
  if (accountId === undefined || !mayRestore || request.protocol.inputItems === undefined) return;
  const earlier = continued(request);
  if (earlier !== undefined) call.placeholders.recall(await rows.kept(accountId, earlier));
  if (sentBy(request)['store'] === false || exchange.find(caller)?.retention === 'none') return;
  exchange.beforeEnd(async () => {
    const { restored } = call.placeholders;
    if (restored.size === 0) return;
    const ids = [`resp_${exchange.id}`, call.answerId, conversationOf(request)].filter((id) => id !== undefined);
    await rows
      .keep(accountId, [...new Set(ids)], restored, { at: host.clock.now(), random: host.random })
      .catch((error: unknown) => {
        exchange.log.warn({ error }, 'placeholders of a conversation could not be kept');
      });
  });
}

/** The id by which the request goes on, here or at a vendor. */
export function continued(request: Opened): string | undefined {
  return conversationOf(request) ?? textOf(sentBy(request)['previous_response_id']);
}

const sentBy = ({ json, clientJson }: Opened) => clientJson ?? json;

function conversationOf(request: Opened): string | undefined {
  const { conversation } = sentBy(request);
  return request.conversation?.id ?? (isObject(conversation) ? textOf(conversation['id']) : textOf(conversation));
}

/** They are sealed with the order of a line, and known again for its answer. */
export function followLine(exchange: Exchange, call: GuardedCall, rows: VerdictRows, random: Host['random']): void {
  const stage = exchange.find(vendorBatch);
  if (stage === undefined) return;
  const owner = { accountId: exchange.find(caller)?.accountId ?? '', id: `line ${exchange.id}` };
  if (stage === 'answer') {
    const kept = exchange.find(keptForAnswer)?.sealed();
    if (kept !== undefined) call.placeholders.recall(rows.unseal(kept, owner));
    return;
  }
  const { placeholders } = call;
  exchange.set(keptForAnswer, {
    sealed: () => (placeholders.restored.size === 0 ? undefined : rows.seal(placeholders.restored, owner, random)),
  });
}
