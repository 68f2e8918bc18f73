/** Top-up: an amount, then the payment service's own page. */
import { Alert, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { IconCreditCard } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { get, newAttempt, send } from '../../api/client.ts';
import type { PaymentPage, Usd } from '../../api/types.ts';
import { localDecimals, moneyText, typedAmount } from '../../parts/format.ts';
import { Money } from '../../parts/money.tsx';
import { Panel } from '../../parts/page.tsx';
import { useSearchState } from '../../parts/search-state.ts';
import { useErrorText } from '../../parts/states.tsx';
import { Time } from '../../parts/time.tsx';

export function TopUp() {
  const { t, i18n } = useTranslation();
  const [search] = useSearchState();
  const payments = useQuery({ queryKey: ['payments'], queryFn: () => get<PaymentPage>('/payments', { limit: 5 }) });
  const between =
    payments.data === undefined
      ? undefined
      : t('client.wallet.topUpBetween', {
          least: moneyText(payments.data.least, i18n.language),
          most: moneyText(payments.data.most, i18n.language),
        });
  return (
    <Panel title={t('client.wallet.topUp')} hint={between}>
      <Stack gap="sm">
        {search['payment'] === 'paid' && (
          <Alert color="teal" variant="light">
            {t('client.wallet.paid')}
          </Alert>
        )}
        {search['payment'] === 'left' && (
          <Alert color="gray" variant="light">
            {t('client.wallet.left')}
          </Alert>
        )}
        <AmountForm amounts={payments.data?.amounts ?? []} />
        {(payments.data?.rows ?? []).map((payment) => (
          <Group key={payment.id} justify="space-between" gap="xs">
            <Text fz="sm" c="dimmed" component="div">
              <Time at={payment.createdAt} /> · {t(`client.wallet.paymentState.${payment.state}`)}
            </Text>
            <Money of={payment.amount} />
          </Group>
        ))}
      </Stack>
    </Panel>
  );
}

function AmountForm({ amounts }: { readonly amounts: readonly Usd[] }) {
  const { t, i18n } = useTranslation();
  const textOf = useErrorText();
  const [amount, setAmount] = useState('20');
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  // The same attempt until the amount changes: pressing twice begins one payment.
  const attempt = useRef(newAttempt());
  const choose = (wanted: string) => {
    setAmount(wanted);
    attempt.current = newAttempt();
  };
  const begin = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      const { url } = await send<{ url: string }>(
        'POST',
        '/payments/checkout',
        { amount: typedAmount(amount) },
        attempt.current,
      );
      location.assign(url);
    } catch (error) {
      setProblem(textOf(error));
      setBusy(false);
    }
  };
  return (
    <form onSubmit={(event) => void begin(event)}>
      {amounts.length > 0 && (
        <Group gap={6} mb="xs" role="group" aria-label={t('shell.word.amount')}>
          {amounts.map((sum) => (
            <Button
              key={sum}
              size="compact-sm"
              variant={sum === typedAmount(amount) ? 'light' : 'default'}
              aria-pressed={sum === typedAmount(amount)}
              onClick={() => choose(localDecimals(sum, i18n.language))}
            >
              {moneyText(sum, i18n.language)}
            </Button>
          ))}
        </Group>
      )}
      <Group gap="xs" align="flex-start" wrap="nowrap">
        <TextInput
          className="grow"
          aria-label={t('shell.word.amount')}
          leftSection="$"
          inputMode="decimal"
          required
          value={amount}
          error={problem}
          onChange={({ currentTarget }) => choose(currentTarget.value)}
        />
        <Button type="submit" loading={busy} leftSection={<IconCreditCard size={16} />}>
          {t('client.wallet.topUpButton')}
        </Button>
      </Group>
    </form>
  );
}
