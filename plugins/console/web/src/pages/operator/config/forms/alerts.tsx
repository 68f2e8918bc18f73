/** Rules of alerts and where they are sent. */
import { Group, SimpleGrid, Stack } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useAnswer } from '../../parts/load.tsx';
import type { AlertRule } from '../../types.ts';
import { useForms, useMember } from './context.ts';
import { ChoiceField, ListField, SecretField, TextField, YesNoField } from './fields.tsx';
import { fileFor, namesAt, valueAt } from './layers.ts';
import { Remove } from './models/tiers.tsx';
import { Picker } from './picker.tsx';
import { SecretSetting } from './stored-secret.tsx';

const rulesAt = ['alerts', 'rules'];
const sinksAt = ['alerts', 'sinks'];
const off = 'off';
const same = (value: string) => ({ value, label: value });

/** Begins an entry with its first member. */
function useAdd(at: readonly string[], member: string, value: string) {
  const { layers, drafts } = useForms();
  return (name: string) => {
    const path = [...at, name];
    const draft = drafts.find((one) => one.file.name === fileFor(layers, path)?.name);
    draft?.addEntry(path, new Map([[member, value]]));
  };
}

export function AlertRuleForm() {
  const { t } = useTranslation();
  const { layers } = useForms();
  const rules = useAnswer<{ rows: readonly AlertRule[] }>('/admin/alerts/rules').data?.rows ?? [];
  const kinds = [...new Set(rules.map(({ kind }) => kind))];
  const names = [...new Set([...rules.map(({ name }) => name), ...namesAt(layers, rulesAt)])];
  const add = useAdd(rulesAt, 'kind', kinds[0] ?? '');
  return (
    <Picker label={t('operator.alerts.rules')} names={names} add={t('operator.alerts.addRule')} onAdd={add}>
      {(name) => <Rule name={name} kinds={kinds} runs={rules.find((rule) => rule.name === name)} />}
    </Picker>
  );
}

interface RuleProps {
  readonly name: string;
  readonly kinds: readonly string[];
  /** As it runs. */
  readonly runs: AlertRule | undefined;
}

function Rule({ name, kinds, runs }: RuleProps) {
  const { t } = useTranslation();
  const { layers } = useForms();
  const at = [...rulesAt, name];
  const { written } = useMember(at);
  return (
    <Stack gap="sm">
      <Group align="flex-end" gap="xs">
        <OnOff at={at} />
        {written !== undefined && <Remove path={at} label={t('operator.alerts.remove', { name })} />}
      </Group>
      {written !== off && (
        <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
          <ChoiceField path={[...at, 'kind']} label={t('shell.word.kind')} usual={name} choices={kinds.map(same)} />
          <TextField path={[...at, 'threshold']} label={t('operator.alerts.limit')} usual={usualOf(runs?.threshold)} />
          <TextField path={[...at, 'clear']} label={t('operator.alerts.clear')} usual={usualOf(runs?.clear)} />
          <TextField path={[...at, 'least']} label={t('operator.alerts.least')} />
          <TextField path={[...at, 'window']} label={t('operator.alerts.window')} usual="10m" />
          <TextField path={[...at, 'for']} label={t('operator.alerts.forTime')} usual="1m" />
          <TextField path={[...at, 'quiet']} label={t('operator.alerts.quiet')} usual="5m" />
          <TextField path={[...at, 'repeat']} label={t('operator.alerts.repeat')} usual="4h" />
          <ListField
            path={[...at, 'sinks']}
            label={t('operator.alerts.sinks')}
            usual={t('operator.alerts.allSinks')}
            known={namesAt(layers, sinksAt)}
          />
        </SimpleGrid>
      )}
    </Stack>
  );
}

const usualOf = (value: string | number | undefined): string => (value === undefined ? '' : String(value));

/** `off` is written where a rule's settings would be. */
function OnOff({ at }: { readonly at: readonly string[] }) {
  const { t } = useTranslation();
  return (
    <ChoiceField
      path={at}
      label={t('shell.word.state')}
      usual={t('operator.alerts.on')}
      choices={[{ value: off, label: t('operator.alerts.off') }]}
    />
  );
}

const types = ['mail', 'webhook', 'slack', 'discord', 'feishu', 'dingtalk'];

export function AlertSinkForm() {
  const { t } = useTranslation();
  const { layers } = useForms();
  const add = useAdd(sinksAt, 'type', types[0]!);
  return (
    <Picker
      label={t('operator.alerts.sink')}
      names={namesAt(layers, sinksAt)}
      add={t('operator.alerts.addSink')}
      onAdd={add}
    >
      {(name) => <Sink name={name} />}
    </Picker>
  );
}

function Sink({ name }: { readonly name: string }) {
  const { t } = useTranslation();
  const { layers } = useForms();
  const at = [...sinksAt, name];
  const type = valueAt(layers, [...at, 'type']);
  return (
    <Stack gap="sm">
      <Group align="flex-end" gap="xs">
        <ChoiceField path={[...at, 'type']} label={t('shell.word.kind')} choices={types.map(same)} />
        <Remove path={at} label={t('operator.alerts.remove', { name })} />
      </Group>
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        {type === 'mail' && <ListField path={[...at, 'to']} label={t('operator.alerts.to')} />}
        {type === 'webhook' && <TextField path={[...at, 'url']} label={t('operator.alerts.url')} />}
        {type !== 'mail' && type !== 'webhook' && (
          <SecretSetting path={[...at, 'webhook']} label={t('operator.alerts.chatUrl')} name={`alerts-${name}`} />
        )}
        {type !== 'mail' && <SecretField path={[...at, 'secret']} label={t('operator.alerts.secret')} many />}
        {type !== 'mail' && (
          <YesNoField
            path={[...at, 'allow_private']}
            label={t('operator.alerts.allowPrivate')}
            usual={t('shell.no')}
            hint={t('operator.alerts.allowPrivateHint')}
          />
        )}
      </SimpleGrid>
    </Stack>
  );
}
