/** Roles or plans of people by what their provider says of them: the first rule that holds. */
import { ActionIcon, Autocomplete, Button, Fieldset, Group, Select, Stack, Text, TextInput } from '@mantine/core';
import { IconPlus, IconTrash } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { BesideField } from '../../../../parts/beside-field.tsx';
import { useForms, useMember } from './context.ts';
import type { Path } from './edit-yaml.ts';
import { namesAt, type Whole, wholeAt } from './layers.ts';

interface ClaimRulesProps {
  /** The list of rules. */
  readonly path: Path;
  /** What a rule gives. */
  readonly gives: 'role' | 'plan';
}
interface Rule {
  readonly claim: string;
  readonly value: string;
  readonly given: string;
}
const roles = ['operator', 'auditor', 'client'] as const;

export function ClaimRules({ path, gives }: ClaimRulesProps) {
  const { t } = useTranslation();
  const { layers } = useForms();
  const { error, isFixed, set } = useMember(path);
  const [typed, setTyped] = useState<readonly Rule[]>();
  const written = rulesIn(wholeAt(layers, path), gives);
  const rules = typed ?? written ?? [];
  const change = (next: readonly Rule[]) => {
    // A rule with an empty field is not one yet.
    const isWhole = next.every((rule) => Object.values(rule).every((text) => text.trim() !== ''));
    const isKept = isWhole && set(next.length === 0 ? undefined : next.map((rule) => mapOf(rule, gives)));
    setTyped(isKept ? undefined : next);
  };
  const title = t(`operator.config.forms.claims.${gives}s`);
  if (written === undefined) return <Fieldset legend={title}>{t('operator.config.forms.inText')}</Fieldset>;
  return (
    <Fieldset legend={title} disabled={isFixed} onBlur={() => typed !== undefined && change(typed)}>
      <Stack gap="xs">
        <Text fz="xs" c="dimmed">
          {t('operator.config.forms.claims.hint')}
        </Text>
        {rules.map((rule, at) => (
          <OneRule
            // biome-ignore lint/suspicious/noArrayIndexKey: rules have nothing but their place
            key={at}
            rule={rule}
            gives={gives}
            onEdit={(more) => setTyped(withRule(rules, at, more))}
            onDone={(more) => change(withRule(rules, at, more))}
            onRemove={() => change(rules.filter((_, index) => index !== at))}
          />
        ))}
        {error !== undefined && (
          <Text fz="xs" c="red" role="alert">
            {error}
          </Text>
        )}
        <Group>
          <Button
            size="xs"
            variant="default"
            leftSection={<IconPlus size={14} />}
            onClick={() =>
              setTyped([...rules, { claim: 'groups', value: '', given: gives === 'role' ? 'auditor' : '' }])
            }
          >
            {t('operator.config.forms.claims.add')}
          </Button>
        </Group>
      </Stack>
    </Fieldset>
  );
}

interface OneRuleProps {
  readonly rule: Rule;
  readonly gives: ClaimRulesProps['gives'];
  readonly onEdit: (more: Partial<Rule>) => void;
  /** A choice that needs no further typing. */
  readonly onDone: (more: Partial<Rule>) => void;
  readonly onRemove: () => void;
}

function OneRule({ rule, gives, onEdit, onDone, onRemove }: OneRuleProps) {
  const { t } = useTranslation();
  const { layers } = useForms();
  const data = roles.map((value) => ({ value, label: t(`operator.people.people.role.${value}`) }));
  return (
    <Group gap="xs" align="flex-start">
      {(['claim', 'value'] as const).map((name) => (
        <TextInput
          key={name}
          label={t(`operator.config.forms.claims.${name}`)}
          placeholder={name === 'claim' ? 'groups' : 'gateway-admins'}
          value={rule[name]}
          onChange={({ currentTarget }) => onEdit({ [name]: currentTarget.value })}
        />
      ))}
      {gives === 'role' ? (
        <Select
          label={t('operator.people.audit.role')}
          data={data}
          value={rule.given || null}
          allowDeselect={false}
          onChange={(given) => onDone({ given: given ?? '' })}
        />
      ) : (
        <Autocomplete
          label={t('shell.word.plan')}
          data={[...namesAt(layers, ['plans', 'offers'])]}
          value={rule.given}
          onChange={(given) => onEdit({ given })}
        />
      )}
      <BesideField>
        <ActionIcon
          variant="subtle"
          color="gray"
          size="lg"
          aria-label={t('operator.alerts.remove', { name: `${rule.claim} ${rule.value}`.trim() })}
          onClick={onRemove}
        >
          <IconTrash size={16} />
        </ActionIcon>
      </BesideField>
    </Group>
  );
}

const withRule = (rules: readonly Rule[], at: number, more: Partial<Rule>) =>
  rules.map((rule, index) => (index === at ? { ...rule, ...more } : rule));

const mapOf = ({ claim, value, given }: Rule, gives: string) =>
  new Map([
    ['claim', claim.trim()],
    ['value', value.trim()],
    [gives, given.trim()],
  ]);

/** undefined: written in a way that only the text shows. */
function rulesIn(list: Whole | undefined, gives: string): readonly Rule[] | undefined {
  if (list === undefined) return [];
  if (!Array.isArray(list)) return undefined;
  const rules = (list as readonly Whole[]).map((one) => {
    const { claim, value, [gives]: given } = Object(one) as Record<string, unknown>;
    const isText = [claim, value, given].every((text) => typeof text === 'string');
    return isText ? { claim: claim as string, value: value as string, given: given as string } : undefined;
  });
  return rules.includes(undefined) ? undefined : (rules as Rule[]);
}
