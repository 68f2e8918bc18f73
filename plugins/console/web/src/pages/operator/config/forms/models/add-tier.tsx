/** New tiers of a price: what they are called, and what differs from the price they belong to. */
import { Button, Group, Menu, SimpleGrid, Stack, TextInput } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useEntry, useForms } from '../context.ts';
import type { Path } from '../edit-yaml.ts';
import { namesAt, valueAt } from '../layers.ts';
import { AmountFields } from './amount-fields.tsx';
import { hasPrices, memberOf, type Sort, sorts, type TierText, tierFaults, tierValue } from './tier-entry.ts';

interface AddTierProps {
  readonly at: Path;
  readonly classes: readonly string[];
  /** Absent: any sort can be added. */
  readonly only?: Sort;
}

export function AddTier({ at, classes, only }: AddTierProps) {
  const { t } = useTranslation();
  const [sort, setSort] = useState<Sort>();
  const plus = <IconPlus size={15} />;
  if (sort !== undefined) return <NewTier at={at} classes={classes} sort={sort} onDone={() => setSort(undefined)} />;
  if (only !== undefined)
    return (
      <Group>
        <Button size="xs" variant="default" leftSection={plus} onClick={() => setSort(only)}>
          {t(`operator.config.forms.tier.${only}`)}
        </Button>
      </Group>
    );
  return (
    <Group>
      <Menu position="bottom-start">
        <Menu.Target>
          <Button size="xs" variant="default" leftSection={plus}>
            {t('operator.config.forms.addTier')}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {sorts.map((one) => (
            <Menu.Item key={one} onClick={() => setSort(one)}>
              {t(`operator.config.forms.tier.${one}`)}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
    </Group>
  );
}

interface NewTierProps {
  readonly at: Path;
  readonly classes: readonly string[];
  readonly sort: Sort;
  readonly onDone: () => void;
}

function NewTier({ at, classes, sort, onDone }: NewTierProps) {
  const { t } = useTranslation();
  const { layers } = useForms();
  const member = [...at, memberOf[sort]];
  const { add } = useEntry(member);
  const base = new Map(classes.map((one) => [one, lettersAt(valueAt(layers, [...at, one]))]));
  const [tier, setTier] = useState<TierText>({ name: '', ratio: '', amounts: base });
  const [tried, setTried] = useState(false);
  const [refused, setRefused] = useState(false);
  const faults = tierFaults(sort, tier, base, new Set(namesAt(layers, member)));
  const errorOf = (field: string) => {
    if (field === 'name' && refused) return t('operator.config.forms.refused');
    const fault = tried ? faults.get(field) : undefined;
    if (fault === undefined) return undefined;
    return fault === 'ratioWrong' ? t('operator.ask.ratioWrong') : t(`operator.config.forms.${fault}`);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (faults.size > 0) return;
    if (add(tier.name.trim(), tierValue(sort, tier, base))) onDone();
    else setRefused(true);
  };
  return (
    <form onSubmit={submit} noValidate aria-label={t(`operator.config.forms.tier.${sort}`)}>
      <Stack gap="sm">
        <Head sort={sort} tier={tier} onChange={setTier} errorOf={errorOf} />
        {hasPrices(sort) && (
          <AmountFields
            at="amounts"
            classes={classes}
            amounts={tier.amounts}
            errorOf={errorOf}
            onChange={(amounts) => setTier({ ...tier, amounts })}
          />
        )}
        <Group gap="xs">
          <Button size="xs" type="submit">
            {t('operator.config.forms.addTier')}
          </Button>
          <Button size="xs" variant="default" onClick={onDone}>
            {t('shell.cancel')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

const lettersAt = (written: unknown): string => (typeof written === 'string' ? written : '');

interface HeadProps {
  readonly sort: Sort;
  readonly tier: TierText;
  readonly onChange: (tier: TierText) => void;
  readonly errorOf: (field: string) => string | undefined;
}

const examples = { level: '200k', service: 'flex', servicePrices: 'priority', hours: 'mon-fri 01:00-04:00' } as const;

/** What it is called, and its ratio if it has one. */
function Head({ sort, tier, onChange, errorOf }: HeadProps) {
  const { t } = useTranslation();
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
      <TextInput
        label={t(`operator.config.forms.tierName.${sort}`)}
        placeholder={examples[sort]}
        value={tier.name}
        error={errorOf('name')}
        onChange={({ currentTarget }) => onChange({ ...tier, name: currentTarget.value })}
      />
      {!hasPrices(sort) && (
        <TextInput
          label={t('operator.config.forms.ratioOnTokens')}
          inputMode="decimal"
          value={tier.ratio}
          error={errorOf('ratio')}
          onChange={({ currentTarget }) => onChange({ ...tier, ratio: currentTarget.value })}
        />
      )}
    </SimpleGrid>
  );
}
