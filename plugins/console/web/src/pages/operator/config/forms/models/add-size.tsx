/** A price for one more size of an image or a video. */
import { Button, Group, TextInput } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { BesideField } from '../../../../../parts/beside-field.tsx';
import { useClassName } from '../../../../../parts/known-words.ts';
import { useEntry, useForms } from '../context.ts';
import type { Path } from '../edit-yaml.ts';
import { namesAt, valueAt } from '../layers.ts';
import { isAmount } from './model-kinds.ts';

interface AddSizeProps {
  readonly at: Path;
  readonly name: 'image' | 'second';
}

export function AddSize({ at, name }: AddSizeProps) {
  const { t } = useTranslation();
  const { layers } = useForms();
  const nameOf = useClassName();
  const { isFixed } = useEntry(at);
  const [opened, setOpened] = useState(false);
  if (isFixed || valueAt(layers, at) === undefined) return null;
  if (opened) return <NewSize at={at} name={name} onDone={() => setOpened(false)} />;
  return (
    <Group>
      <Button size="xs" variant="default" leftSection={<IconPlus size={15} />} onClick={() => setOpened(true)}>
        {t('operator.config.forms.addSize', { name: nameOf(name) })}
      </Button>
    </Group>
  );
}

function NewSize({ at, name, onDone }: AddSizeProps & { readonly onDone: () => void }) {
  const { t } = useTranslation();
  const { layers } = useForms();
  const { add, replace } = useEntry(at);
  const [words, setWords] = useState('');
  const [amount, setAmount] = useState('');
  const [tried, setTried] = useState(false);
  const before = valueAt(layers, at);
  const size = words.trim();
  const nameFault = namesAt(layers, at).includes(size) ? 'nameTaken' : size === '' ? 'sizeMissing' : undefined;
  const isFine = isAmount(amount.trim());
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (nameFault !== undefined || !isFine) return;
    // What the piece has cost so far becomes the price of all other sizes.
    const isDone =
      typeof before === 'string'
        ? replace(
            new Map([
              [size, amount.trim()],
              ['default', before],
            ]),
          )
        : add(size, amount.trim());
    if (isDone) onDone();
  };
  return (
    <form onSubmit={submit} noValidate>
      <Group gap="xs" align="flex-start">
        <TextInput
          label={t('operator.config.forms.sizeName')}
          placeholder={name === 'image' ? 'high 1024x1536' : '1080p'}
          value={words}
          error={tried && nameFault !== undefined ? t(`operator.config.forms.${nameFault}`) : undefined}
          onChange={({ currentTarget }) => setWords(currentTarget.value)}
        />
        <TextInput
          label={t(`shell.per.${name}`)}
          inputMode="decimal"
          value={amount}
          error={tried && !isFine ? t('operator.config.forms.amountWrong') : undefined}
          onChange={({ currentTarget }) => setAmount(currentTarget.value)}
        />
        <BesideField>
          <Button type="submit">{t('shell.create')}</Button>
        </BesideField>
      </Group>
    </form>
  );
}
