/** An amount for each class, with its unit, before it is written into the file. */
import { SimpleGrid, TextInput } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { useClassName } from '../../../../../parts/known-words.ts';
import { unitOf } from './model-kinds.ts';

interface AmountFieldsProps {
  /** The field to which the amounts belong. */
  readonly at: string;
  readonly classes: readonly string[];
  /** By class, as they were typed. */
  readonly amounts: ReadonlyMap<string, string>;
  readonly errorOf: (field: string) => string | undefined;
  readonly onChange: (amounts: ReadonlyMap<string, string>) => void;
}

export function AmountFields({ at, classes, amounts, errorOf, onChange }: AmountFieldsProps) {
  const { t } = useTranslation();
  const nameOf = useClassName();
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
      {classes.map((one) => (
        <TextInput
          key={one}
          label={nameOf(one)}
          description={t(`shell.per.${unitOf(one)}`)}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          inputMode="decimal"
          value={amounts.get(one) ?? ''}
          error={errorOf(`${at}.${one}`)}
          onChange={({ currentTarget }) => onChange(new Map(amounts).set(one, currentTarget.value))}
        />
      ))}
    </SimpleGrid>
  );
}
