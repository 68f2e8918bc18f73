/** Payments by card: the two secrets of the payment service, and what clients may pay. */
import { SimpleGrid, Stack } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useForms } from './context.ts';
import { ListField, TextField } from './fields.tsx';
import { valueAt } from './layers.ts';
import { OneAddress } from './providers.tsx';
import { SecretSetting } from './stored-secret.tsx';

const at = ['payments'];

export function PaymentForm() {
  const { t } = useTranslation();
  const { layers } = useForms();
  const origin = valueAt(layers, ['console', 'origin']);
  const shown = typeof origin === 'string' && /^https?:/.test(origin) ? origin : window.location.origin;
  return (
    <Stack gap="sm">
      <OneAddress label={t('operator.config.forms.webhookAddress')} address={`${shown}/payments/webhook`} />
      <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm">
        <ListField path={[...at, 'amounts']} label={t('operator.config.forms.payAmounts')} usual="5, 10, 25, 50, 100" />
        <TextField path={[...at, 'min']} label={t('operator.config.forms.payLeast')} usual="5" />
        <TextField path={[...at, 'max']} label={t('operator.config.forms.payMost')} usual="500" />
      </SimpleGrid>
      <SecretSetting
        path={[...at, 'secret_key']}
        label={t('operator.config.forms.paymentKey')}
        name="payments-secret-key"
      />
      <SecretSetting
        path={[...at, 'webhook_secret']}
        label={t('operator.config.forms.webhookSecret')}
        name="payments-webhook-secret"
      />
    </Stack>
  );
}
