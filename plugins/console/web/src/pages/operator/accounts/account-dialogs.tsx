/** The dialogs by which an account is changed; each wants a reason. */
import { Select, Stack, TextInput } from '@mantine/core';
import { type ComponentProps, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import { listKey } from '../../../parts/data-table.tsx';
import { exactMoneyText, localDecimals, typedAmount } from '../../../parts/format.ts';
import { ledgerPath } from '../money/ledger-table.tsx';
import { Act } from '../parts/act.tsx';
import { answerKey } from '../parts/load.tsx';
import { MomentField, toIso } from '../parts/moment-field.tsx';
import { accountNamesKey } from '../parts/names.tsx';
import { usePlans } from '../plans/use-plans.ts';
import { isAmount, isRatio } from '../sums/usd.ts';
import type { Account } from '../types.ts';

interface DialogProps {
  readonly account: Account;
  readonly onClose: () => void;
}
const pathOf = ({ id }: Account) => `/admin/accounts/${encodeURIComponent(id)}`;
const staleFor = (account: Account) => [
  answerKey(pathOf(account)),
  listKey('/admin/accounts'),
  listKey(ledgerPath),
  accountNamesKey,
];

/** A change of an account: what it makes old is asked for again. */
function AccountAct({
  account,
  ...act
}: { readonly account: Account } & Omit<ComponentProps<typeof Act>, 'opened' | 'stale'>) {
  return <Act opened stale={staleFor(account)} {...act} />;
}

interface DecimalProps {
  readonly label: string;
  readonly placeholder: string;
  readonly required?: boolean;
  readonly value: string;
  /** Its fault. */
  readonly wrong: string | undefined;
  readonly onChange: (text: string) => void;
}

function DecimalField({ wrong, onChange, ...field }: DecimalProps) {
  return (
    <TextInput
      {...field}
      inputMode="decimal"
      data-autofocus
      error={wrong}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
    />
  );
}

export function MoneyDialog({ account, verb, onClose }: DialogProps & { readonly verb: 'credit' | 'debit' }) {
  const { t, i18n } = useTranslation();
  const [typed, setTyped] = useState('');
  const amount = typedAmount(typed);
  const [expires, setExpires] = useState('');
  const { name } = account;
  const done = verb === 'credit' ? 'credited' : 'debited';
  return (
    <AccountAct
      account={account}
      onClose={onClose}
      title={t(`operator.people.accounts.${verb}Title`, { name })}
      text={t(`operator.people.accounts.${verb}Text`)}
      action={t(`operator.people.accounts.${verb}`)}
      danger={verb === 'debit'}
      missing={!isAmount(amount)}
      act={async (reason, once) => {
        const body = { amount, reason, ...(verb === 'credit' ? { expiresAt: toIso(expires) } : {}) };
        const { balance } = await send<{ balance: string }>('POST', `${pathOf(account)}/${verb}`, body, once);
        const text = (usd: string) => exactMoneyText(usd, i18n.language);
        return t(`operator.people.accounts.${done}`, { amount: text(amount), balance: text(balance) });
      }}
    >
      <DecimalField
        label={t('shell.word.amount')}
        placeholder={localDecimals('12.50', i18n.language)}
        required
        value={typed}
        wrong={typed === '' || isAmount(amount) ? undefined : t('operator.ask.amountWrong')}
        onChange={setTyped}
      />
      {verb === 'credit' && (
        <MomentField
          label={t('operator.people.accounts.creditExpires')}
          description={t('operator.people.accounts.creditExpiresHint')}
          value={expires}
          onChange={setExpires}
        />
      )}
    </AccountAct>
  );
}

export function PlanDialog({ account, onClose }: DialogProps) {
  const { t } = useTranslation();
  const plans = usePlans().data?.rows ?? [];
  const [plan, setPlan] = useState<string | null>(account.plan);
  const [endsAt, setEndsAt] = useState('');
  const { name } = account;
  return (
    <AccountAct
      account={account}
      onClose={onClose}
      title={t('operator.people.accounts.planTitle', { name })}
      text={t('operator.people.accounts.planText')}
      action={t('operator.people.accounts.changePlan')}
      missing={plan === null}
      act={async (reason) => {
        await send('POST', `${pathOf(account)}/plan`, { plan, endsAt: toIso(endsAt), reason });
        return t('operator.people.accounts.planChanged', { name, plan });
      }}
    >
      <Select
        label={t('shell.word.plan')}
        data={plans.map((one) => one.name)}
        allowDeselect={false}
        data-autofocus
        value={plan}
        onChange={setPlan}
      />
      <MomentField
        label={t('operator.people.accounts.planEnds')}
        description={t('operator.people.accounts.planEndsHint')}
        value={endsAt}
        onChange={setEndsAt}
      />
    </AccountAct>
  );
}

export function MultiplierDialog({ account, onClose }: DialogProps) {
  const { t } = useTranslation();
  const [ratio, setRatio] = useState(account.multiplier ?? '');
  const { name } = account;
  const isFine = ratio.trim() === '' || isRatio(ratio);
  return (
    <AccountAct
      account={account}
      onClose={onClose}
      title={t('operator.people.accounts.multiplierTitle', { name })}
      text={t('operator.people.accounts.multiplierText')}
      action={t('shell.save')}
      missing={!isFine}
      act={async (reason) => {
        const multiplier = ratio.trim() === '' ? null : ratio.trim();
        await send('POST', `${pathOf(account)}/multiplier`, { multiplier, reason });
        return t('operator.people.accounts.multiplierChanged', { name, ratio: localDecimals(multiplier ?? '1') });
      }}
    >
      <DecimalField
        label={t('shell.word.ratio')}
        placeholder="1"
        value={ratio}
        wrong={isFine ? undefined : t('operator.ask.ratioWrong')}
        onChange={setRatio}
      />
    </AccountAct>
  );
}

/** `from`: its own name, which may not be the one that it is called by. */
export function RenameDialog({ account, from, onClose }: DialogProps & { readonly from: string }) {
  const { t } = useTranslation();
  const [typed, setTyped] = useState(from);
  const name = typed.trim();
  return (
    <AccountAct
      account={account}
      onClose={onClose}
      title={t('operator.people.accounts.renameTitle', { name: account.name })}
      text={t('operator.people.accounts.renameText')}
      action={t('operator.people.accounts.rename')}
      missing={name === '' || name === from}
      act={async (reason) => {
        await send('POST', `${pathOf(account)}/rename`, { name, reason });
        return t('operator.people.accounts.renamed', { name });
      }}
    >
      <TextInput
        label={t('shell.word.name')}
        required
        data-autofocus
        maxLength={100}
        value={typed}
        onChange={({ currentTarget }) => setTyped(currentTarget.value)}
      />
    </AccountAct>
  );
}

/** Keeps nothing of the account's calls, or what the settings say. */
export function RetentionDialog({ account, onClose }: DialogProps) {
  const { t } = useTranslation();
  const verb = account.retention === 'none' ? 'default' : 'none';
  const { name } = account;
  return (
    <AccountAct
      account={account}
      onClose={onClose}
      title={t(`operator.people.accounts.retention.${verb}Title`, { name })}
      text={
        <Stack gap="xs">
          <div>{t(`operator.people.accounts.retention.${verb}Text`)}</div>
          {verb === 'none' && <div>{t('operator.people.accounts.retention.noneStays')}</div>}
        </Stack>
      }
      action={t(`operator.people.accounts.retention.${verb}`)}
      act={async (reason) => {
        await send('POST', `${pathOf(account)}/retention`, { retention: verb === 'none' ? verb : null, reason });
        return t(`operator.people.accounts.retention.${verb}Done`, { name });
      }}
    />
  );
}

export function AdmissionDialog({ account, onClose }: DialogProps) {
  const { t } = useTranslation();
  const verb = account.disabled ? 'enable' : 'disable';
  const { name } = account;
  return (
    <AccountAct
      account={account}
      onClose={onClose}
      title={t(`operator.people.accounts.${verb}Title`, { name })}
      text={t(`operator.people.accounts.${verb}Text`)}
      action={t(`operator.people.accounts.${verb}`)}
      danger={verb === 'disable'}
      act={async (reason) => {
        await send('POST', `${pathOf(account)}/${verb}`, { reason });
        return t(`operator.people.accounts.${verb}dDone`, { name });
      }}
    />
  );
}
