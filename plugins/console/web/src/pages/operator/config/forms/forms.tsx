/** Forms for the settings that change most; a changed file is checked, compared and saved like its text. */
import { Alert, Stack, Tabs, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { Panel } from '../../../../parts/page.tsx';
import { useSearchState } from '../../../../parts/search-state.ts';
import { ErrorState } from '../../../../parts/states.tsx';
import { useActs } from '../../parts/act.tsx';
import type { ConfigFile } from '../../sale-types.ts';
import { CheckResult } from '../check-result.tsx';
import { DraftFoot, Overtaken } from '../draft-foot.tsx';
import type { Draft } from '../drafts.ts';
import type { SchemaNode } from '../schema.ts';
import { useChecks } from '../use-check.ts';
import { AlertRuleForm, AlertSinkForm } from './alerts.tsx';
import { BrandForm } from './brand.tsx';
import { FormProvider } from './context.ts';
import { type Layer, layersOf, valueAt } from './layers.ts';
import { ModelForm } from './models/models.tsx';
import { NoticeForm } from './notices.tsx';
import { PaymentForm } from './payments.tsx';
import { PlanForm } from './plans.tsx';
import { RatioForm } from './ratios.tsx';
import { SignOnForm } from './sign-on.tsx';
import { SignUpForm } from './sign-up.tsx';
import { VendorForm } from './vendors.tsx';

const forms = [
  { name: 'vendors', plugin: 'providers', show: () => <VendorForm /> },
  { name: 'prices', plugin: 'models', show: () => <ModelForm /> },
  { name: 'plans', plugin: 'plans', show: () => <PlanForm /> },
  { name: 'ratios', plugin: 'models', show: () => <RatioForm /> },
  { name: 'signUp', plugin: 'console', show: () => <SignUpForm /> },
  { name: 'signOn', plugin: 'console', show: () => <SignOnForm /> },
  { name: 'payments', plugin: 'payments', show: () => <PaymentForm /> },
  { name: 'brand', plugin: 'console', show: () => <BrandForm /> },
  { name: 'notices', plugin: 'notices', show: () => <NoticeForm /> },
  { name: 'alerts', plugin: 'alerts', show: () => <AlertRuleForm /> },
  { name: 'sinks', plugin: 'alerts', show: () => <AlertSinkForm /> },
] as const satisfies readonly { name: string; plugin: string; show: () => ReactNode }[];

export type FormName = (typeof forms)[number]['name'];

interface FormsProps {
  readonly drafts: readonly Draft[];
  readonly schema: object;
  /** One entry of one form. */
  readonly only?: { readonly form: FormName; readonly entry: string };
}

export function Forms({ drafts, schema, only }: FormsProps) {
  const acts = useActs();
  const checks = useChecks(drafts);
  const layers = layersOf(
    drafts.map(({ file, text }) => ({
      name: file.name,
      text,
      writable: file.writable && file.readOnly === null,
      includes: file.includes,
    })),
  );
  const problems = checks.flatMap(({ check }) => check.data?.problems ?? []);
  const offered = forms.filter(({ plugin }) => runs(layers, plugin));
  const value = { layers, drafts, problems, schema: schema as SchemaNode, readOnly: !acts, entry: only?.entry };
  return (
    <FormProvider value={value}>
      <Stack gap="sm">
        {acts && <WrittenFile files={drafts.map(({ file }) => file)} layers={layers} />}
        {only === undefined ? <Tabbed offered={offered} /> : forms.find(({ name }) => name === only.form)!.show()}
        {acts && checks.map(({ draft, check }) => <Changed key={draft.file.name} draft={draft} check={check} />)}
      </Stack>
    </FormProvider>
  );
}

function Tabbed({ offered }: { readonly offered: readonly (typeof forms)[number][] }) {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const opened = offered.find(({ name }) => name === search['form']) ?? offered[0];
  return (
    <Panel>
      <Tabs
        value={opened?.name ?? null}
        onChange={(form) => change({ form: form ?? undefined, entry: undefined, add: undefined })}
        variant="pills"
        keepMounted={false}
      >
        <Tabs.List mb="md">
          {offered.map(({ name }) => (
            <Tabs.Tab key={name} value={name}>
              {t(`operator.config.forms.title.${name}`)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {offered.map(({ name, show }) => (
          <Tabs.Panel key={name} value={name}>
            <Stack gap="sm">{show()}</Stack>
          </Tabs.Panel>
        ))}
      </Tabs>
    </Panel>
  );
}

/** Where changes are written; where nowhere, why. */
function WrittenFile({ files, layers }: { readonly files: readonly ConfigFile[]; readonly layers: readonly Layer[] }) {
  const { t } = useTranslation();
  const file = layers.find(({ writable }) => writable)?.name;
  const isNew = files[0]?.name === file && files[0]?.text === '' && files[1]?.readOnly === 'shipped';
  if (file !== undefined)
    return (
      <Text fz="sm" c="dimmed">
        {t('operator.config.forms.tree.writesTo', { file })}{' '}
        {isNew && t('operator.config.forms.tree.madeThen', { own: file.split('/').at(-1), file: files[1]!.name })}
      </Text>
    );
  const [top] = files;
  return (
    <Alert color="yellow" variant="light" title={t('operator.config.forms.tree.writesNowhere')}>
      {top !== undefined && t(`operator.config.forms.tree.${top.readOnly ?? 'mounted'}`, { file: top.name })}
    </Alert>
  );
}

function runs(layers: readonly Layer[], plugin: string): boolean {
  const plugins = valueAt(layers, ['plugins']);
  return Array.isArray(plugins) && plugins.includes(plugin);
}

interface ChangedProps {
  readonly draft: Draft;
  readonly check: ReturnType<typeof useChecks>[number]['check'];
}

function Changed({ draft, check }: ChangedProps) {
  const { t } = useTranslation();
  return (
    <Panel title={draft.file.name.split('/').at(-1)}>
      <Stack gap="sm">
        {draft.isOvertaken && <Overtaken onTake={draft.takeTheirs} />}
        {check.isError ? (
          <ErrorState error={check.error} onRetry={() => void check.refetch()} />
        ) : (
          <CheckResult check={check.data} busy={check.isFetching} onGo={() => undefined} />
        )}
        <DraftFoot
          draft={draft}
          check={check.data}
          busy={check.isFetching}
          hint={t('operator.config.forms.sameFile')}
        />
      </Stack>
    </Panel>
  );
}
