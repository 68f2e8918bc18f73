/** Prices of models and the operator's own cost, by class. */
import { Fieldset, SimpleGrid, Stack, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useClassName } from '../../../../parts/known-words.ts';
import { useForms } from './context.ts';
import { ListField, TextField } from './fields.tsx';
import { type Layer, namesAt, valueAt } from './layers.ts';
import { Picker } from './picker.tsx';

/** The classes that each kind of model usually has a price for. */
const usualClasses: ReadonlyMap<string, readonly string[]> = new Map([
  ['chat', ['input', 'cache_read', 'cache_write_5m', 'output']],
  ['image', ['image', 'input', 'output_image']],
  ['video', ['second', 'request']],
  ['embedding', ['input']],
  ['rerank', ['search', 'input']],
  ['speech', ['character', 'output_audio']],
  ['transcription', ['audio', 'input_audio', 'output']],
  ['moderation', ['input']],
  ['realtime', ['input', 'cache_read', 'input_audio', 'cache_read_audio', 'output', 'output_audio']],
]);
/** Members of a price that are not a class. */
const others = new Set(['above', 'service', 'hours', 'version', 'from']);

export function PriceForm() {
  const { t } = useTranslation();
  const { layers } = useForms();
  return (
    <Picker label={t('operator.config.forms.model')} names={namesAt(layers, ['models'])}>
      {(name) => <Model name={name} />}
    </Picker>
  );
}

function Model({ name }: { readonly name: string }) {
  const { t } = useTranslation();
  const { layers } = useForms();
  const at = ['models', name];
  return (
    <Stack gap="sm">
      <ListField
        path={[...at, 'targets']}
        label={t('operator.config.forms.targets')}
        hint={t('operator.config.forms.targetsHint')}
        known={namesAt(layers, ['providers'])}
      />
      {(['price', 'cost'] as const).map((sheet) => (
        <Fieldset key={sheet} legend={t(`operator.config.forms.${sheet}`)}>
          <Sheet at={[...at, sheet]} kind={kindOf(layers, name)} />
        </Fieldset>
      ))}
    </Stack>
  );
}

function kindOf(layers: readonly Layer[], name: string): string {
  const kind = valueAt(layers, ['models', name, 'kind']);
  return typeof kind === 'string' ? kind : 'chat';
}

function Sheet({ at, kind }: { readonly at: readonly string[]; readonly kind: string }) {
  const { t } = useTranslation();
  const { layers } = useForms();
  const nameOf = useClassName();
  const written = valueAt(layers, at);
  const names = namesAt(layers, at);
  if (written !== undefined && names.length === 0)
    return (
      <Text fz="sm" c="dimmed">
        {written === 'free' ? t('operator.config.forms.isFree') : t('operator.config.forms.inText')}
      </Text>
    );
  const classes = [...new Set([...(usualClasses.get(kind) ?? []), ...names.filter((one) => !others.has(one))])];
  const tiers = names.filter((one) => others.has(one));
  return (
    <>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
        {classes.flatMap((one) => {
          const sizes = namesAt(layers, [...at, one]);
          if (sizes.length === 0) return [<TextField key={one} path={[...at, one]} label={nameOf(one)} />];
          return sizes.map((size) => (
            <TextField key={`${one} ${size}`} path={[...at, one, size]} label={`${nameOf(one)} · ${size}`} />
          ));
        })}
      </SimpleGrid>
      {tiers.length > 0 && (
        <Text fz="xs" c="dimmed" mt="xs">
          {t('operator.config.forms.tiersInText', { names: tiers.join(', ') })}
        </Text>
      )}
    </>
  );
}
