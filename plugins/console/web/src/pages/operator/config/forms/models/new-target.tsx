/** A provider that serves a new model: its name of the model, the protocols that it takes there, and what it asks. */

import { ActionIcon, Fieldset, MultiSelect, Select, SimpleGrid, Text, TextInput } from '@mantine/core';
import { IconTrash } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import type { ModelKind } from '../../../../../../../../common/domain/models.ts';
import { useForms } from '../context.ts';
import { namesAt, valueAt } from '../layers.ts';
import { presetsOf } from '../vendors.tsx';
import { AmountFields } from './amount-fields.tsx';
import { usualClasses } from './model-kinds.ts';
import type { NewTarget as Target } from './new-model-entry.ts';

export const noTarget: Target = { provider: '', model: '', protocols: [], cost: new Map() };

interface NewTargetProps {
  readonly target: Target;
  readonly at: string;
  readonly kind: ModelKind;
  readonly errorOf: (field: string) => string | undefined;
  readonly onChange: (target: Target) => void;
  /** undefined: it is the only one. */
  readonly onRemove: (() => void) | undefined;
}

export function NewTarget({ target, at, kind, errorOf, onChange, onRemove }: NewTargetProps) {
  const { t } = useTranslation();
  const { layers } = useForms();
  const { spoken, keys } = useProvider(target.provider);
  const change = (changed: Partial<Target>) => onChange({ ...target, ...changed });
  return (
    <Fieldset
      variant="unstyled"
      legend={
        <>
          {target.provider || t('operator.config.forms.vendor')}
          {onRemove !== undefined && (
            <ActionIcon
              variant="subtle"
              color="gray"
              ml="xs"
              aria-label={t('operator.config.forms.removeTarget')}
              onClick={onRemove}
            >
              <IconTrash size={16} />
            </ActionIcon>
          )}
        </>
      }
    >
      <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} spacing="sm" mb="sm">
        <Select
          label={t('operator.config.forms.vendor')}
          description={keys === '' ? undefined : t('operator.config.forms.usesKeys', { keys })}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          required
          searchable
          data={[...namesAt(layers, ['providers'])]}
          value={target.provider || null}
          error={errorOf(`${at}.provider`)}
          onChange={(provider) => change({ provider: provider ?? '', protocols: [] })}
        />
        <TextInput
          label={t('operator.config.forms.upstreamName')}
          placeholder={t('operator.config.forms.sameName')}
          value={target.model}
          onChange={({ currentTarget }) => change({ model: currentTarget.value })}
        />
        {spoken.length > 1 && (
          <MultiSelect
            label={t('operator.config.forms.protocols')}
            placeholder={target.protocols.length === 0 ? t('operator.config.forms.allProtocols') : undefined}
            data={[...spoken]}
            value={[...target.protocols]}
            onChange={(protocols) => change({ protocols })}
          />
        )}
      </SimpleGrid>
      <Text fz="sm" mb={4}>
        {t('operator.config.forms.newCost')}
      </Text>
      <AmountFields
        at={`${at}.cost`}
        classes={usualClasses[kind]}
        amounts={target.cost}
        errorOf={errorOf}
        onChange={(cost) => change({ cost })}
      />
    </Fieldset>
  );
}

/** The protocols of a provider, its own or those of its preset, and the names of its keys. */
function useProvider(name: string): { readonly spoken: readonly string[]; readonly keys: string } {
  const { layers, schema } = useForms();
  const at = ['providers', name];
  const own = namesAt(layers, [...at, 'speaks']);
  const preset = valueAt(layers, [...at, 'preset']);
  const addresses = typeof preset === 'string' ? presetsOf(schema).get(preset)?.addresses : undefined;
  const keys = valueAt(layers, [...at, 'keys']);
  const written = typeof keys === 'string' ? [keys] : Array.isArray(keys) ? keys : [];
  // A key that the file has as text is not shown.
  const variables = written.flatMap((text) => /^\$\{([A-Za-z_]\w*)/.exec(text)?.[1] ?? []);
  return { spoken: own.length > 0 ? own : Object.keys(addresses ?? {}), keys: variables.join(', ') };
}
