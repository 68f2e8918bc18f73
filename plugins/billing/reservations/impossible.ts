/** Reports a vendor's counts that its call cannot have consumed to the operators. */
import type { Host } from '../../../core/contract/contract.ts';
import { alertEvents } from '../../common/domain/admin/alerts.ts';
import type { Attempt } from '../../common/domain/calls.ts';

/** The usage was read from the last attempt. */
export function reportImpossible(host: Pick<Host, 'find'>, attempt: Attempt | undefined): void {
  const { provider = 'unknown', model = 'unknown' } = attempt ?? {};
  host.find(alertEvents)?.report('usage_implausible', `${provider}/${model}`, { provider, model });
}
