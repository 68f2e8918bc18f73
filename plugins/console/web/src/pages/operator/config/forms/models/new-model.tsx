/** A new model: name, where it is served, sizes, prices and own cost; it is written into the file as one entry. */

import { Alert, Button, Fieldset, Group, Select, SimpleGrid, Stack, TextInput } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { type ModelKind, modelKinds } from '../../../../../../../../common/domain/models.ts';
import { useEntry } from '../context.ts';
import { AmountFields } from './amount-fields.tsx';
import { kindOf, limitsOf, sizesOf, usualClasses } from './model-kinds.ts';
import { type Amounts, entryOf, faultsOf, type NewModel as Model } from './new-model-entry.ts';
import { NewTarget, noTarget } from './new-target.tsx';

interface NewModelProps {
  readonly names: readonly string[];
  /** The name of the new entry; undefined: there is none. */
  readonly onDone: (name: string | undefined) => void;
}

const nothing: Amounts = new Map();
const empty: Model = {
  name: '',
  kind: 'chat',
  displayName: '',
  owner: '',
  targets: [noTarget],
  sizes: nothing,
  limits: nothing,
  price: nothing,
};

export default function NewModel({ names, onDone }: NewModelProps) {
  const { t } = useTranslation();
  const { add } = useEntry(['models']);
  const [model, setModel] = useState(empty);
  const [tried, setTried] = useState(false);
  const [refused, setRefused] = useState(false);
  const change = (changed: Partial<Model>) => setModel({ ...model, ...changed });
  const faults = faultsOf(model, new Set(names));
  const errorOf = (field: string) => {
    const fault = tried ? faults.get(field) : undefined;
    return fault === undefined ? undefined : t(`operator.config.forms.${fault}`);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (faults.size > 0) return;
    const name = model.name.trim();
    if (add(name, entryOf(model))) onDone(name);
    else setRefused(true);
  };
  return (
    <form onSubmit={submit} noValidate aria-label={t('operator.config.forms.addModel')}>
      <Stack gap="sm">
        <Head model={model} change={change} errorOf={errorOf} />
        <Targets model={model} change={change} errorOf={errorOf} />
        <Sizes model={model} change={change} errorOf={errorOf} />
        <Fieldset legend={t('operator.config.forms.newPrice')}>
          <Stack gap="sm">
            <AmountFields
              at="price"
              classes={usualClasses[model.kind]}
              amounts={model.price}
              errorOf={errorOf}
              onChange={(price) => change({ price })}
            />
            {[...model.price.values()].every((text) => text.trim() === '') && (
              <Alert color="yellow" variant="light" p="xs">
                {t('operator.config.forms.unpriced')}
              </Alert>
            )}
          </Stack>
        </Fieldset>
        {refused && (
          <Alert color="red" variant="light">
            {t('operator.config.forms.refused')}
          </Alert>
        )}
        <Group gap="xs">
          <Button type="submit">{t('shell.create')}</Button>
          <Button variant="default" onClick={() => onDone(undefined)}>
            {t('shell.cancel')}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

interface PartProps {
  readonly model: Model;
  readonly change: (changed: Partial<Model>) => void;
  readonly errorOf: (field: string) => string | undefined;
}

function Head({ model, change, errorOf }: PartProps) {
  const { t } = useTranslation();
  const classes = (kind: ModelKind, amounts: Amounts) =>
    new Map([...amounts].filter(([name]) => usualClasses[kind].includes(name)));
  const choose = (kind: ModelKind) =>
    change({
      kind,
      price: classes(kind, model.price),
      sizes: new Map([...model.sizes].filter(([name]) => sizesOf(kind).some((one) => one === name))),
      limits: new Map([...model.limits].filter(([name]) => limitsOf(kind).some((one) => one === name))),
      targets: model.targets.map((target) => ({ ...target, cost: classes(kind, target.cost) })),
    });
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
      <TextInput
        label={t('shell.word.name')}
        description={t('operator.config.forms.newNameHint')}
        inputWrapperOrder={['label', 'input', 'description', 'error']}
        required
        value={model.name}
        error={errorOf('name')}
        onChange={({ currentTarget }) => change({ name: currentTarget.value })}
      />
      <Select
        label={t('shell.word.kind')}
        data={modelKinds.map((one) => ({ value: one, label: t(`client.models.kinds.${one}`) }))}
        value={model.kind}
        allowDeselect={false}
        onChange={(kind) => choose(kindOf(kind))}
      />
      <TextInput
        label={t('operator.config.forms.displayName')}
        placeholder={model.name}
        value={model.displayName}
        onChange={({ currentTarget }) => change({ displayName: currentTarget.value })}
      />
      <TextInput
        label={t('operator.config.forms.owner')}
        placeholder={model.targets[0]?.provider}
        value={model.owner}
        onChange={({ currentTarget }) => change({ owner: currentTarget.value })}
      />
    </SimpleGrid>
  );
}

function Targets({ model, change, errorOf }: PartProps) {
  const { t } = useTranslation();
  const { targets } = model;
  return (
    <Fieldset legend={t('operator.config.forms.targets')}>
      <Stack gap="md">
        {targets.map((target, index) => (
          <NewTarget
            // biome-ignore lint/suspicious/noArrayIndexKey: a target has no name of its own, and each field is controlled.
            key={index}
            target={target}
            at={`targets.${index}`}
            kind={model.kind}
            errorOf={errorOf}
            onChange={(changed) => change({ targets: targets.with(index, changed) })}
            onRemove={targets.length === 1 ? undefined : () => change({ targets: targets.toSpliced(index, 1) })}
          />
        ))}
        <Group>
          <Button
            size="xs"
            variant="default"
            leftSection={<IconPlus size={15} />}
            onClick={() => change({ targets: [...targets, noTarget] })}
          >
            {t('operator.config.forms.addTarget')}
          </Button>
        </Group>
      </Stack>
    </Fieldset>
  );
}

function Sizes({ model, change, errorOf }: PartProps) {
  const { t } = useTranslation();
  const { kind, sizes, limits } = model;
  if (sizesOf(kind).length + limitsOf(kind).length === 0) return null;
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
      {sizesOf(kind).map((one) => (
        <TextInput
          key={one}
          label={t(`operator.config.forms.size.${one}`)}
          placeholder={one === 'context' ? '200k' : '64k'}
          value={sizes.get(one) ?? ''}
          error={errorOf(`sizes.${one}`)}
          onChange={({ currentTarget }) => change({ sizes: new Map(sizes).set(one, currentTarget.value) })}
        />
      ))}
      {limitsOf(kind).map((one) => (
        <TextInput
          key={one}
          label={t(`operator.config.forms.limit.${one}`)}
          placeholder={one === 'size' ? '2048x2048' : '–'}
          value={limits.get(one) ?? ''}
          error={errorOf(`limits.${one}`)}
          onChange={({ currentTarget }) => change({ limits: new Map(limits).set(one, currentTarget.value) })}
        />
      ))}
    </SimpleGrid>
  );
}
