/** The form that sets a budget, or changes what one allows: what it counts never changes. */
import { Alert, Button, Checkbox, Group, MultiSelect, Select, Stack, TagsInput, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { ApiError, get, send } from '../../api/client.ts';
import { modelsQuery } from '../../api/models.ts';
import type { BudgetRow, KeyRow, Page, ProjectRow } from '../../api/types.ts';
import { moneyText, typedAmount } from '../format.ts';
import { ErrorState } from '../states.tsx';
import { useWork } from '../use-work.ts';
import { viewerZone } from '../zone.tsx';
import { isAmount, nanoOf } from './budget-amount.ts';
import { Reason } from './budget-dialogs.tsx';
import { type BudgetPlace, useBudgetsChanged } from './budget-place.ts';
import './budget-texts.ts';

const kinds = ['account', 'project', 'person', 'key', 'models', 'tag'] as const;
const periods = ['day', 'week', 'month', 'quarter', 'year', 'ever'] as const;
const shares = ['0.25', '0.5', '0.75', '0.8', '0.9', '1'];

interface Fields {
  readonly of: BudgetRow['of'];
  readonly project: string | null;
  readonly key: string | null;
  readonly models: string[];
  readonly tag: string;
  readonly each: boolean;
  readonly amount: string;
  readonly every: BudgetRow['every'];
  readonly zone: string;
  readonly hard: 'true' | 'false';
  readonly instead: string | null;
  readonly warn: string[];
  readonly reason: string;
}

const fieldsOf = (row: BudgetRow | undefined): Fields => ({
  of: row?.of ?? 'account',
  project: row?.of === 'project' ? row.subject : null,
  key: row?.of === 'key' ? row.subject : null,
  models: row?.models ?? [],
  tag: row?.tag ?? '',
  each: row?.by === 'person',
  amount: row?.amount ?? '',
  every: row?.every ?? 'month',
  zone: row?.zone ?? '',
  hard: row?.hard === false ? 'false' : 'true',
  instead: row?.instead ?? null,
  warn: row?.warn.map(String) ?? ['0.8'],
  reason: '',
});

function termsOf(fields: Fields, row: BudgetRow | undefined, isOperator: boolean) {
  const { of, project, key, models, tag, each, amount, every, zone, hard, instead, warn, reason } = fields;
  return {
    of,
    subject: row?.subject ?? { project, key, account: null, person: null, models: null, tag: null }[of],
    models: of === 'models' ? models : null,
    tag: of === 'tag' ? tag.trim() : null,
    by: of === 'models' && each ? 'person' : null,
    amount: typedAmount(amount),
    every,
    zone: zone === '' ? null : zone,
    first: row?.first ?? null,
    hard: hard === 'true',
    instead: hard === 'true' ? instead : null,
    warn: warn.map(Number).sort((one, other) => one - other),
    ...(isOperator ? { reason: reason.trim() } : {}),
  };
}

const isTag = (text: string): boolean => /^[a-z][a-z0-9_.-]*=[A-Za-z0-9_.:/@-]+$/.test(text);

interface BudgetFormProps {
  readonly of: BudgetRow | 'new';
  readonly place: BudgetPlace;
  readonly onClose: () => void;
}

function useBudgetForm(row: BudgetRow | undefined, isOperator: boolean) {
  const { t } = useTranslation();
  const missing = (isMissing: boolean) => (isMissing ? t('client.budgets.missing') : null);
  return useForm<Fields>({
    initialValues: fieldsOf(row),
    validate: {
      amount: (value) => (isAmount(typedAmount(value)) ? null : t('client.budgets.amountWrong')),
      key: (value, { of }) => missing(of === 'key' && value === null),
      models: (value, { of }) => missing(of === 'models' && value.length === 0),
      tag: (value, { of }) => (of !== 'tag' || isTag(value.trim()) ? null : t('client.budgets.tagWrong')),
      reason: (value) => missing(isOperator && value.trim() === ''),
    },
  });
}
type Form = ReturnType<typeof useBudgetForm>;

export function BudgetForm({ of, place, onClose }: BudgetFormProps) {
  const { t } = useTranslation();
  const row = of === 'new' ? undefined : of;
  const isOperator = place.authority === 'operator';
  const form = useBudgetForm(row, isOperator);
  const changed = useBudgetsChanged(place);
  const { busy, problem, run } = useWork((error) => {
    const field = error instanceof ApiError ? error.field : undefined;
    if (field === undefined || !(field in form.values)) return error;
    form.setFieldError(field, (error as ApiError).message);
    return undefined;
  });
  const save = async (fields: Fields) => {
    await send('POST', `${place.base}/budgets`, termsOf(fields, row, isOperator));
    onClose();
    await changed(t('client.budgets.made'));
  };
  return (
    <form onSubmit={form.onSubmit((fields) => run(() => save(fields)))} noValidate>
      <Stack>
        {row === undefined && <Counted form={form} place={place} />}
        <TextInput
          label={t('shell.word.amount')}
          inputMode="decimal"
          required
          data-autofocus={row !== undefined || undefined}
          {...form.getInputProps('amount')}
        />
        <Select
          label={t('client.budgets.passed')}
          data={[
            { value: 'true', label: t('client.budgets.refused') },
            { value: 'false', label: t('client.budgets.goesOn') },
          ]}
          allowDeselect={false}
          {...form.getInputProps('hard')}
        />
        {form.values.hard === 'true' && <Instead form={form} />}
        <MultiSelect
          label={t('client.budgets.warn')}
          description={t('client.budgets.warnHint')}
          data={[...new Set([...shares, ...form.values.warn])].map((value) => ({
            value,
            label: `${Math.round(Number(value) * 1_000) / 10} %`,
          }))}
          {...form.getInputProps('warn')}
        />
        <Effect form={form} row={row} />
        {isOperator && (
          <Reason
            value={form.values.reason}
            onChange={(text) => form.setFieldValue('reason', text)}
            error={form.errors['reason']}
          />
        )}
        {problem !== undefined && <ErrorState error={problem} />}
        <Group justify="flex-end">
          <Button type="submit" loading={busy}>
            {row === undefined ? t('client.budgets.create') : t('shell.save')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function Instead({ form }: { readonly form: Form }) {
  const { t } = useTranslation();
  const models = useQuery(modelsQuery).data?.rows.map(({ id }) => id) ?? [];
  const { instead } = form.values;
  return (
    <Select
      label={t('client.budgets.instead')}
      description={t('client.budgets.insteadHint')}
      data={instead === null ? models : [...new Set([instead, ...models])]}
      searchable
      clearable
      placeholder={t('client.budgets.refused')}
      {...form.getInputProps('instead')}
    />
  );
}

/** Says before it is saved that calls are refused at once. */
function Effect({ form: { values }, row }: { readonly form: Form; readonly row: BudgetRow | undefined }) {
  const { t, i18n } = useTranslation();
  const amount = typedAmount(values.amount);
  const passed = row?.states.filter(({ spent }) => isAmount(amount) && nanoOf(spent) >= nanoOf(amount)) ?? [];
  if (passed.length === 0 || values.hard === 'false')
    return (
      <Alert color="gray" p="xs">
        {t('client.budgets.counts')}
      </Alert>
    );
  return passed.map(({ scope, name, spent }) => (
    <Alert key={scope} color="red" p="xs" title={name}>
      {t('client.budgets.atOnce', { spent: moneyText(spent, i18n.language) })}
    </Alert>
  ));
}

function Counted({ form, place }: { readonly form: Form; readonly place: BudgetPlace }) {
  const { t } = useTranslation();
  const { of } = form.values;
  return (
    <>
      <Select
        label={t('client.budgets.kind')}
        data={kinds.map((value) => ({ value, label: t(`client.budgets.kinds.${value}`) }))}
        allowDeselect={false}
        data-autofocus
        {...form.getInputProps('of')}
      />
      {of === 'project' && <Project form={form} place={place} />}
      {of === 'key' && <Key form={form} place={place} />}
      {of === 'tag' && (
        <TextInput
          label={t('client.budgets.tag')}
          description={t('client.budgets.tagHint')}
          placeholder="env=dev"
          required
          {...form.getInputProps('tag')}
        />
      )}
      {of === 'models' && (
        <>
          <TagsInput
            label={t('client.budgets.models')}
            description={t('client.budgets.modelsHint')}
            {...form.getInputProps('models')}
          />
          <Checkbox label={t('client.budgets.each')} {...form.getInputProps('each', { type: 'checkbox' })} />
        </>
      )}
      <Group grow align="start">
        <Select
          label={t('client.budgets.every')}
          data={periods.map((value) => ({ value, label: t(`client.budgets.periods.${value}`) }))}
          allowDeselect={false}
          {...form.getInputProps('every')}
        />
        <Select
          label={t('client.budgets.zone')}
          data={[
            { value: '', label: t('client.budgets.zoneOfAccount') },
            ...[...new Set(['UTC', viewerZone])].map((value) => ({ value, label: value })),
          ]}
          allowDeselect={false}
          {...form.getInputProps('zone')}
        />
      </Group>
    </>
  );
}

interface OfOne {
  readonly form: Form;
  readonly place: BudgetPlace;
}

function useRows<Row>({ base }: BudgetPlace, path: string): readonly Row[] {
  const answer = useQuery({
    queryKey: ['budget subjects', base, path],
    queryFn: ({ signal }) => get<Page<Row>>(`${base}/${path}`, { limit: 500 }, signal),
  });
  return answer.data?.rows ?? [];
}

function Project({ form, place }: OfOne) {
  const { t } = useTranslation();
  const rows = useRows<ProjectRow>(place, 'projects');
  return (
    <Select
      label={t('client.budgets.project')}
      data={rows.map(({ id, name }) => ({ value: id, label: name }))}
      searchable
      clearable
      placeholder={t('client.budgets.eachProject')}
      {...form.getInputProps('project')}
    />
  );
}

function Key({ form, place }: OfOne) {
  const { t } = useTranslation();
  const rows = useRows<KeyRow>(place, 'keys').filter(({ revokedAt }) => revokedAt === null);
  return (
    <Select
      label={t('client.budgets.key')}
      data={rows.map(({ id, name, prefix }) => ({ value: id, label: `${name} (${prefix}…)` }))}
      searchable
      {...form.getInputProps('key')}
    />
  );
}
