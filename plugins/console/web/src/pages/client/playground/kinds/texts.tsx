/** A list of short texts that grows and shrinks. */
import { ActionIcon, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { IconPlus, IconX } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';

const most = 10;

interface TextsProps {
  readonly label: string;
  /** `Text {{number}}` and the like. */
  readonly nameOf: (number: number) => string;
  readonly values: readonly string[];
  readonly fewest: number;
  readonly onChange: (values: readonly string[]) => void;
}

export function Texts({ label, nameOf, values, fewest, onChange }: TextsProps) {
  const { t } = useTranslation();
  const put = (index: number, text: string) => onChange(values.with(index, text));
  return (
    <fieldset className="bare-fieldset">
      <Text component="legend" fz="sm" fw={500} mb={6}>
        {label}
      </Text>
      <Stack gap={6}>
        {values.map((value, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a text is known by its place
          <Group key={index} gap={6} wrap="nowrap">
            <TextInput
              className="grow"
              aria-label={nameOf(index + 1)}
              placeholder={nameOf(index + 1)}
              value={value}
              onChange={({ currentTarget }) => put(index, currentTarget.value)}
            />
            {values.length > fewest && (
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label={t('client.playground.dropText', { name: nameOf(index + 1) })}
                onClick={() => onChange(values.toSpliced(index, 1))}
              >
                <IconX size={14} />
              </ActionIcon>
            )}
          </Group>
        ))}
        {values.length < most && (
          <div>
            <Button
              size="compact-sm"
              variant="subtle"
              leftSection={<IconPlus size={14} />}
              onClick={() => onChange([...values, ''])}
            >
              {t('client.playground.addText')}
            </Button>
          </div>
        )}
      </Stack>
    </fieldset>
  );
}

export const written = (values: readonly string[]): readonly string[] =>
  values.map((value) => value.trim()).filter((value) => value !== '');
