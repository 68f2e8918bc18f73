/** Redeems a code and says what it brought. */
import { Alert, Button, Group, Stack, TextInput } from '@mantine/core';
import { IconGift } from '@tabler/icons-react';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../api/client.ts';
import type { Redemption } from '../../api/types.ts';
import { moneyText } from '../../parts/format.ts';
import { Panel } from '../../parts/page.tsx';
import { useErrorText } from '../../parts/states.tsx';
import { useWork } from '../../parts/use-work.ts';
import { useMoneyChanged } from './money-changed.ts';

export function Redeem() {
  const { t, i18n } = useTranslation();
  const changed = useMoneyChanged();
  const [code, setCode] = useState('');
  const [gift, setGift] = useState<Redemption>();
  const { busy, problem, run } = useWork(useErrorText());
  const redeem = (event: FormEvent) => {
    event.preventDefault();
    setGift(undefined);
    return run(async () => {
      setGift(await send<Redemption>('POST', '/wallet/redeem', { code: code.trim() }));
      setCode('');
      await changed();
    });
  };
  return (
    <Panel title={t('client.wallet.redeem')} hint={t('client.wallet.redeemHint')}>
      <form onSubmit={(event) => void redeem(event)}>
        <Stack gap="sm">
          <Group gap="xs" align="flex-start" wrap="nowrap">
            <TextInput
              className="grow"
              aria-label={t('client.wallet.code')}
              placeholder={t('client.wallet.code')}
              autoComplete="off"
              spellCheck={false}
              required
              maxLength={100}
              value={code}
              error={problem}
              onChange={({ currentTarget }) => setCode(currentTarget.value)}
            />
            <Button type="submit" loading={busy} leftSection={<IconGift size={16} />}>
              {t('client.wallet.redeemButton')}
            </Button>
          </Group>
          {gift !== undefined && (
            <Alert color="teal" variant="light" title={t('client.wallet.redeemed')} role="status">
              {gift.amount !== null &&
                t('client.wallet.redeemedAmount', { amount: moneyText(gift.amount, i18n.language) })}{' '}
              {gift.plan !== null && t('client.wallet.redeemedPlan', { plan: gift.plan })}
            </Alert>
          )}
        </Stack>
      </form>
    </Panel>
  );
}
