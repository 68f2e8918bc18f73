/** Vendors: the keys of each, where it is reached, and new ones from the presets. */
import { Anchor, Select, SimpleGrid, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useActs } from '../../parts/act.tsx';
import { nodesAt, type SchemaNode } from '../schema.ts';
import { useForms } from './context.ts';
import { SecretField, TextField } from './fields.tsx';
import { fileFor, namesAt, valueAt, type Written } from './layers.ts';
import { Picker } from './picker.tsx';
import { VendorKey } from './vendor-key.tsx';

interface Preset {
  readonly name: string;
  /** The page on which a key is made. */
  readonly key: string;
  readonly variable?: string;
  readonly addresses: Readonly<Record<string, string>>;
}
/** What an entry without a preset may speak, with the addresses that clients know. */
const protocols = ['chat', 'responses', 'messages', 'gemini'] as const;

export function presetsOf(schema: SchemaNode): ReadonlyMap<string, Preset> {
  const entries = nodesAt(schema, ['providers', 'any']);
  const written = entries.map(({ properties }) => properties?.['preset'] as { 'x-presets'?: object } | undefined);
  const found = written.find((preset) => preset?.['x-presets'] !== undefined);
  return new Map(Object.entries((found?.['x-presets'] ?? {}) as Readonly<Record<string, Preset>>));
}

export function VendorForm() {
  const { t } = useTranslation();
  const { layers, drafts, schema } = useForms();
  const presets = presetsOf(schema);
  const [preset, setPreset] = useState<string | null>(null);
  const names = namesAt(layers, ['providers']);
  const add = (name: string) => {
    const path = ['providers', name];
    const chosen = preset === null ? undefined : presets.get(preset);
    const first = preset === null ? ([] as const) : ([['preset', preset]] as const);
    const variable = chosen?.variable ?? `${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}_API_KEY`;
    const draft = drafts.find((one) => one.file.name === fileFor(layers, path)?.name);
    draft?.addEntry(path, new Map([...first, ['keys', `\${${variable}:-secret:${name}}`]]));
  };
  return (
    <Picker
      label={t('operator.config.forms.vendor')}
      names={names}
      add={t('operator.config.forms.addVendor')}
      onAdd={add}
      more={
        <Select
          label={t('operator.config.forms.preset')}
          description={t('operator.config.forms.presetHint')}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          data={[...presets].map(([value, { name }]) => ({ value, label: name }))}
          value={preset}
          searchable
          clearable
          placeholder={t('operator.config.forms.noPreset')}
          onChange={setPreset}
        />
      }
    >
      {(name) => <Vendor key={name} name={name} presets={presets} />}
    </Picker>
  );
}

function Vendor({ name, presets }: { readonly name: string; readonly presets: ReadonlyMap<string, Preset> }) {
  const { t } = useTranslation();
  const { layers } = useForms();
  const at = ['providers', name];
  const acts = useActs();
  const secret = secretIn(valueAt(layers, [...at, 'keys']));
  const written = valueAt(layers, [...at, 'preset']);
  const preset = typeof written === 'string' ? presets.get(written) : undefined;
  const spoken = namesAt(layers, [...at, 'speaks']);
  const own = Object.keys(preset?.addresses ?? {});
  // A preset brings its addresses; the form of an entry without one offers the four protocols of clients.
  const shown = [...new Set([...(preset === undefined ? protocols : own), ...spoken])];
  // Only at first: what a person opens or shuts stays so while an address is written or cleared.
  const [startsOpen] = useState(preset === undefined || spoken.length > 0);
  return (
    <>
      {preset !== undefined && (
        <Text fz="sm" mb="sm">
          {t('operator.config.forms.fromPreset', { name: preset.name })}{' '}
          {/^https?:/.test(preset.key) && (
            <Anchor href={preset.key} target="_blank" rel="noreferrer" fz="sm">
              {t('operator.config.forms.getKey')}
            </Anchor>
          )}
          {preset.variable !== undefined && ` ${t('operator.config.forms.usualVariable', { name: preset.variable })}`}
        </Text>
      )}
      <SecretField path={[...at, 'keys']} label={t('shell.word.keys')} many />
      {acts && secret !== undefined && <VendorKey key={name} name={name} secret={secret} />}
      {shown.length > 0 && (
        <details className="addresses" open={startsOpen}>
          <summary>{t('operator.config.forms.addresses', { count: shown.length })}</summary>
          <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
            {shown.map((protocol) => (
              <TextField
                key={protocol}
                path={[...at, 'speaks', protocol]}
                label={t('operator.config.forms.address', { protocol })}
                usual={preset?.addresses[protocol] ?? t('operator.config.forms.notSpoken')}
              />
            ))}
          </SimpleGrid>
        </details>
      )}
    </>
  );
}

/** The name of the stored key in `secret:NAME` or `${VARIABLE:-secret:NAME}`. */
function secretIn(written: Written | undefined): string | undefined {
  const texts = typeof written === 'string' ? [written] : Array.isArray(written) ? written : [];
  return texts.flatMap((text: string) => /^(?:\$\{\w+:-)?secret:([\w.-]+)\}?$/.exec(text)?.[1] ?? [])[0];
}
