/** Asks before an action that cannot be undone. */
import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { ErrorState } from './states.tsx';
import { useWork } from './use-work.ts';

interface ConfirmProps {
  readonly opened: boolean;
  readonly title: string;
  /** The effect, and that it is permanent. */
  readonly children: ReactNode;
  /** The verb on the button. */
  readonly action: string;
  readonly danger?: boolean;
  readonly onConfirm: () => Promise<unknown>;
  readonly onClose: () => void;
}

export function Confirm({ opened, title, children, action, danger = false, onConfirm, onClose }: ConfirmProps) {
  const { t } = useTranslation();
  const { busy, problem, run } = useWork((error) => error);
  const confirm = () => run(() => onConfirm().then(onClose));
  return (
    <Modal opened={opened} onClose={onClose} title={title} size="md">
      <Stack>
        <Text fz="sm" component="div">
          {children}
        </Text>
        {problem !== undefined && <ErrorState error={problem} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {t('shell.cancel')}
          </Button>
          <Button color={danger ? 'red' : undefined} loading={busy} onClick={() => void confirm()}>
            {action}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
