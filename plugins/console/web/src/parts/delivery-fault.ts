/** Why a message was not taken by its receiver, in the reader's language. Pure. */
import type { TFunction } from 'i18next';

/** The gateway's own texts; what else it says, such as words of the receiver, stands as it is. */
const forms: readonly (readonly [text: RegExp, say: (t: TFunction, found: string) => string])[] = [
  [/^it answered (\d+)$/, (t, status) => t('shell.delivery.status', { status })],
  [/^it did not answer in time$/, (t) => t('shell.delivery.silent')],
  [/^the connection failed \((\w+)\)$/, (t, code) => t('shell.delivery.connection', { code })],
  [/^it failed$/, (t) => t('shell.delivery.failed')],
  [/^(its (?:host|port) .*|only http .*|it is not a URL)$/, (t, text) => t('shell.delivery.address', { text })],
  [/^it redirects/, (t) => t('shell.delivery.redirects')],
  [/^this gateway sends no mail/, (t) => t('shell.delivery.noMail')],
  [/^no person of the account/, (t) => t('shell.delivery.noPerson')],
  [/^the account has no webhook/, (t) => t('shell.delivery.noWebhook')],
];

export function faultWords(fault: string, t: TFunction): string {
  for (const [text, say] of forms) {
    const found = text.exec(fault);
    if (found !== null) return say(t, found[1] ?? '');
  }
  return fault;
}
