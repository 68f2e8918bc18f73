/** Prices under conditions: for long prompts, for services beyond the standard one, and at hours of the week. */
import { ActionIcon, Group, SimpleGrid, Stack, Text, TextInput } from '@mantine/core';
import { IconTrash } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useClassName } from '../../../../../parts/known-words.ts';
import { useEntry, useForms } from '../context.ts';
import type { Path } from '../edit-yaml.ts';
import { TextField } from '../fields.tsx';
import { namesAt } from '../layers.ts';
import { AddTier } from './add-tier.tsx';
import { isTokenCount } from './model-kinds.ts';

interface TiersProps {
  /** The price that has them. */
  readonly at: Path;
  /** The classes of tokens that it prices. */
  readonly classes: readonly string[];
}

export function Tiers({ at, classes }: TiersProps) {
  const { t } = useTranslation();
  const { layers, readOnly } = useForms();
  const services = namesAt(layers, [...at, 'service']);
  const hours = namesAt(layers, [...at, 'hours']);
  return (
    <Stack gap="sm">
      <Levels at={at} classes={classes} />
      {services.map((name) => (
        <Service key={name} at={[...at, 'service', name]} name={name} classes={classes} />
      ))}
      {hours.map((name) => (
        <Ratio key={name} at={[...at, 'hours', name]} title={t('operator.config.forms.hours', { name })} name={name} />
      ))}
      {!readOnly && classes.length > 0 && <AddTier at={at} classes={classes} />}
    </Stack>
  );
}

function Levels({ at, classes }: TiersProps) {
  const { layers } = useForms();
  return namesAt(layers, [...at, 'above']).map((name) => (
    <Level key={name} at={[...at, 'above', name]} name={name} classes={classes} />
  ));
}

interface TierProps extends TiersProps {
  readonly name: string;
}

function Level({ at, name, classes }: TierProps) {
  const { t } = useTranslation();
  const { rename, isFixed } = useEntry(at);
  const [typed, setTyped] = useState<string>();
  const [refused, setRefused] = useState(false);
  const commit = () => {
    const wanted = typed?.trim() ?? name;
    const isKept = wanted === name || (isTokenCount(wanted) && rename(wanted));
    setRefused(!isKept);
    if (isKept) setTyped(undefined);
  };
  return (
    <Stack gap={4} data-testid={`tier ${name}`}>
      <Group gap="xs" align="flex-start" wrap="nowrap">
        <TextInput
          label={t('operator.config.forms.threshold')}
          value={typed ?? name}
          disabled={isFixed}
          error={refused ? t('operator.config.forms.thresholdWrong') : undefined}
          onChange={({ currentTarget }) => setTyped(currentTarget.value)}
          onBlur={commit}
          onKeyDown={({ key }) => key === 'Enter' && commit()}
        />
        <Remove path={at} label={t('operator.config.forms.removeTier', { name: `>${name}` })} mt={26} />
      </Group>
      <Amounts at={at} classes={classes} />
    </Stack>
  );
}

/** A service has a ratio on all tokens, or prices of its own, which may have levels of their own. */
function Service({ at, name, classes }: TierProps) {
  const { t } = useTranslation();
  const { layers } = useForms();
  const title = t('operator.config.forms.service', { name });
  if (namesAt(layers, at).length === 0) return <Ratio at={at} title={title} name={name} />;
  return (
    <Stack gap={4} data-testid={`tier ${name}`}>
      <Group gap="xs">
        <Text fz="sm" fw={500}>
          {title}
        </Text>
        <Remove path={at} label={t('operator.config.forms.removeTier', { name })} />
      </Group>
      <Amounts at={at} classes={classes} />
      <Stack gap="sm" pl="md">
        <Levels at={at} classes={classes} />
        <AddTier at={at} classes={classes} only="level" />
      </Stack>
    </Stack>
  );
}

function Ratio({ at, title, name }: { readonly at: Path; readonly title: string; readonly name: string }) {
  const { t } = useTranslation();
  return (
    <Group gap="xs" align="flex-start" wrap="nowrap" data-testid={`tier ${name}`}>
      <TextField path={at} label={title} hint={t('operator.config.forms.ratioOnTokens')} />
      <Remove path={at} label={t('operator.config.forms.removeTier', { name })} mt={26} />
    </Group>
  );
}

function Amounts({ at, classes }: TiersProps) {
  const { layers } = useForms();
  const nameOf = useClassName();
  const own = namesAt(layers, at).filter((one) => one !== 'above');
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
      {[...new Set([...classes, ...own])].map((one) => (
        <TextField key={one} path={[...at, one]} label={nameOf(one)} usual="–" />
      ))}
    </SimpleGrid>
  );
}

/** Takes an entry out of every file that has it. */
export function Remove({ path, label, mt }: { readonly path: Path; readonly label: string; readonly mt?: number }) {
  const { remove, isFixed } = useEntry(path);
  if (isFixed) return null;
  return (
    <ActionIcon variant="subtle" color="gray" size="lg" mt={mt ?? 0} aria-label={label} title={label} onClick={remove}>
      <IconTrash size={16} />
    </ActionIcon>
  );
}
