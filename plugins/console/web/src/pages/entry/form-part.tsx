/** What the forms before the session share: how they are sent, their errors, their checks. */
import { Alert, Button, Stack } from '@mantine/core';
import i18next from 'i18next';
import type { FormEvent, ReactNode } from 'react';
import { useErrorText } from '../../parts/states.tsx';
import { useWork } from '../../parts/use-work.ts';

interface EntryFormProps {
  readonly button: string;
  readonly onSend: () => Promise<unknown>;
  /** Words for an error that this form knows better. */
  readonly words?: (error: unknown) => string | undefined;
  readonly children: ReactNode;
}

export function EntryForm({ button, onSend, words, children }: EntryFormProps) {
  const textOf = useErrorText();
  const { busy, problem, run } = useWork((error) => words?.(error) ?? textOf(error));
  const send = (event: FormEvent) => {
    event.preventDefault();
    return run(onSend);
  };
  return (
    <form onSubmit={(event) => void send(event)}>
      <Stack gap="sm">
        {problem !== undefined && (
          <Alert color="red" variant="light" role="alert" py="xs">
            {problem}
          </Alert>
        )}
        {children}
        <Button type="submit" fullWidth loading={busy} mt={4}>
          {button}
        </Button>
      </Stack>
    </form>
  );
}

/** Checks of fields: undefined where nothing is wrong. */
export const checks = {
  email: (value: string) => (/^\S+@\S+\.\S+$/.test(value) ? null : i18next.t('entry.emailWrong')),
  password: (value: string) => (value.length >= 10 ? null : i18next.t('entry.passwordShort')),
  name: (value: string) => (value.trim() !== '' ? null : i18next.t('entry.nameMissing')),
};
