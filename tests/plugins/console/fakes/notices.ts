/** Notices of one account, made up: three kinds, a webhook that can be written, and a message that was not taken. */
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { NoticeAdmin, NoticeKindView, NoticeSettings } from '../../../../plugins/common/domain/admin/notices.ts';

export function fakeNotices(now: () => number): NoticeAdmin {
  const kind = (name: string, title: string, unit: NoticeKindView['unit'], usual?: string): NoticeKindView => ({
    kind: name,
    title,
    unit,
    usual,
    channels: ['mail'],
    threshold: usual,
  });
  let kinds = [
    kind('low_balance', 'Low balance', 'usd', '5.00'),
    kind('cap_share', 'A key nears its spend cap', 'share', '0.80'),
    kind('key_expiry', 'A key expires soon', 'days', '7.00'),
    kind('price_change', 'Prices change', 'none'),
  ];
  let webhook: NoticeSettings['webhook'];
  let secrets = 0;
  const last: NoticeSettings['last'] = [
    {
      kind: 'low_balance',
      channel: 'webhook',
      title: 'Low balance',
      at: now() - 60_000,
      sentAt: undefined,
      fault: 'it answered 500',
      waits: true,
    },
  ];
  return {
    settings: async () => ({ kinds, mail: true, webhook, last }),
    async change(_accountId, { choices = [], url, newSecret }) {
      if (url?.includes('127.0.0.1'))
        throw new GatewayError('invalid_request', 'The address of the webhook cannot be called: it is private.', {
          field: 'url',
        });
      kinds = kinds.map((one) => {
        const own = choices.find((choice) => choice.kind === one.kind);
        return own === undefined ? one : { ...one, channels: own.channels, threshold: own.threshold ?? one.usual };
      });
      if (url === null) webhook = undefined;
      else if (url !== undefined || newSecret) webhook = { url: url ?? webhook!.url, secret: `whsec_${++secrets}` };
    },
    test: async (_accountId, channel) => ({ fault: channel === 'webhook' ? 'it answered 500' : undefined }),
  };
}
