/** The form by which a batch of codes is made. */
import { Group, NumberInput, SegmentedControl, Select, Switch, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import { listKey } from '../../../parts/data-table.tsx';
import { localDecimals, typedAmount } from '../../../parts/format.ts';
import { Act } from '../parts/act.tsx';
import { answerKey } from '../parts/load.tsx';
import { MomentField, toIso } from '../parts/moment-field.tsx';
import { usePlans } from '../plans/use-plans.ts';
import type { MadeCodes } from '../sale-types.ts';
import { isAmount } from '../sums/usd.ts';

interface MakeCodesProps {
  readonly kind: string;
  readonly plan: string | undefined;
  readonly onClose: () => void;
  readonly onMade: (made: MadeCodes) => void;
}
const giftKinds = ['balance', 'plan', 'days'] as const;
type GiftKind = (typeof giftKinds)[number];

interface Wanted {
  readonly kind: GiftKind;
  readonly amount: string;
  readonly lastsDays: number | '';
  readonly plan: string | null;
  readonly days: number | '';
  readonly count: number | '';
  readonly maxUses: number | '';
  readonly once: boolean;
  readonly batch: string;
  readonly expires: string;
}

export function MakeCodes({ kind, plan, onClose, onMade }: MakeCodesProps) {
  const { t } = useTranslation();
  const [wanted, setWanted] = useState<Wanted>({
    kind: giftKinds.find((one) => one === kind) ?? 'balance',
    amount: '',
    lastsDays: '',
    plan: plan ?? null,
    days: 30,
    count: 10,
    maxUses: 1,
    once: true,
    batch: '',
    expires: '',
  });
  const change = (part: Partial<Wanted>) => setWanted((before) => ({ ...before, ...part }));
  return (
    <Act
      opened
      onClose={onClose}
      title={t('operator.sales.codes.make')}
      action={t('operator.sales.codes.make')}
      missing={!isWhole(wanted)}
      stale={[listKey('/admin/codes'), answerKey('/admin/codes/batches')]}
      act={async (reason) => {
        onMade(await send<MadeCodes>('POST', '/admin/codes', { ...bodyOf(wanted), reason }));
        return undefined;
      }}
    >
      <GiftFields wanted={wanted} change={change} />
      <BatchFields wanted={wanted} change={change} />
    </Act>
  );
}

function isWhole({ kind, amount, plan, days, count, maxUses }: Wanted): boolean {
  if (count === '' || maxUses === '') return false;
  if (kind === 'balance') return isAmount(typedAmount(amount));
  return plan !== null && (kind === 'plan' || days !== '');
}

function bodyOf({ kind, amount, lastsDays, plan, days, count, maxUses, once, batch, expires }: Wanted): object {
  const gift =
    kind === 'balance'
      ? { kind, amount: typedAmount(amount), lastsDays: lastsDays === '' ? null : lastsDays }
      : kind === 'plan'
        ? { kind, plan }
        : { kind, plan, days };
  const named = batch.trim() === '' ? {} : { batch: batch.trim() };
  return { gift, count, maxUses, oncePerAccount: once, expiresAt: toIso(expires), ...named };
}

interface FieldsProps {
  readonly wanted: Wanted;
  readonly change: (part: Partial<Wanted>) => void;
}
const numberOf = (value: string | number): number | '' => (typeof value === 'number' ? value : '');

function GiftFields({ wanted, change }: FieldsProps) {
  const { t, i18n } = useTranslation();
  const plans = usePlans().data?.rows ?? [];
  const { kind, amount, lastsDays, plan, days } = wanted;
  return (
    <>
      <SegmentedControl
        fullWidth
        aria-label={t('operator.sales.codes.gift')}
        data={giftKinds.map((value) => ({ value, label: t(`operator.sales.codes.giftKind.${value}`) }))}
        value={kind}
        onChange={(value) => change({ kind: value as GiftKind })}
      />
      {kind === 'balance' ? (
        <Group grow align="flex-start">
          <TextInput
            label={t('shell.word.amount')}
            placeholder={localDecimals('10.00', i18n.language)}
            inputMode="decimal"
            required
            data-autofocus
            value={amount}
            error={amount === '' || isAmount(typedAmount(amount)) ? undefined : t('operator.ask.amountWrong')}
            onChange={({ currentTarget }) => change({ amount: currentTarget.value })}
          />
          <NumberInput
            label={t('operator.sales.codes.lasts')}
            placeholder={t('operator.sales.codes.lastsHint')}
            min={1}
            max={3_660}
            allowDecimal={false}
            value={lastsDays}
            onChange={(value) => change({ lastsDays: numberOf(value) })}
          />
        </Group>
      ) : (
        <Group grow align="flex-start">
          <Select
            label={t('shell.word.plan')}
            required
            data={plans.map(({ name }) => name)}
            value={plan}
            onChange={(value) => change({ plan: value })}
          />
          {kind === 'days' && (
            <NumberInput
              label={t('operator.sales.codes.days')}
              min={1}
              max={3_660}
              allowDecimal={false}
              required
              value={days}
              onChange={(value) => change({ days: numberOf(value) })}
            />
          )}
        </Group>
      )}
    </>
  );
}

function BatchFields({ wanted, change }: FieldsProps) {
  const { t } = useTranslation();
  const { count, maxUses, once, batch, expires } = wanted;
  return (
    <>
      <Group grow align="flex-start">
        <NumberInput
          label={t('operator.sales.codes.count')}
          min={1}
          max={1_000}
          allowDecimal={false}
          required
          value={count}
          error={count === '' ? t('operator.sales.codes.countWrong') : undefined}
          onChange={(value) => change({ count: numberOf(value) })}
        />
        <NumberInput
          label={t('operator.sales.codes.maxUses')}
          min={1}
          max={1_000_000}
          allowDecimal={false}
          required
          value={maxUses}
          onChange={(value) => change({ maxUses: numberOf(value) })}
        />
      </Group>
      <TextInput
        label={t('operator.sales.codes.batch')}
        description={t('operator.sales.codes.batchHint')}
        maxLength={100}
        value={batch}
        onChange={({ currentTarget }) => change({ batch: currentTarget.value })}
      />
      <MomentField
        label={t('operator.sales.codes.expires')}
        description={t('operator.sales.codes.expiresHint')}
        value={expires}
        onChange={(value) => change({ expires: value })}
      />
      <Switch
        label={t('operator.sales.codes.once')}
        checked={once}
        onChange={({ currentTarget }) => change({ once: currentTarget.checked })}
      />
    </>
  );
}
