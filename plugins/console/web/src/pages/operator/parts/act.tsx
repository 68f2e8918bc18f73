/** The dialog before a change: asks for a reason and other fields, makes the change, and shows a notification. */
import { Button, type ButtonProps, Group, Modal, Stack, Text, Textarea } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { type QueryKey, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { askAgain } from '../../../api/again.ts';
import { newAttempt } from '../../../api/client.ts';
import { has, isOperator, useMe } from '../../../api/session.ts';
import { ErrorState } from '../../../parts/states.tsx';
import { useWork } from '../../../parts/use-work.ts';

/** Whether the signed-in person may change things; auditors may not. */
export function useActs(): boolean {
  return isOperator(useMe());
}

/** Whether they may change the gateway file here. */
export function useCanEdit(): boolean {
  const me = useMe();
  return isOperator(me) && has(me, 'config');
}

interface ActProps {
  readonly opened: boolean;
  readonly onClose: () => void;
  /** Names the object of the action. */
  readonly title: string;
  readonly text?: ReactNode;
  /** The verb on the button. */
  readonly action: string;
  readonly danger?: boolean;
  /** For what needs room, such as a difference. */
  readonly wide?: boolean;
  /** Fields beside the reason. */
  readonly children?: ReactNode;
  /** The missing input; the button waits for it. */
  readonly missing?: boolean;
  /** Without: no reason is asked for. */
  readonly withReason?: boolean;
  /** `once` names the attempt: it stays the same until it succeeds, so that trying again changes once. Resolves with the text of the notification. */
  readonly act: (reason: string, once: string) => Promise<string | undefined>;
  /** Queries that the change makes old. */
  readonly stale?: readonly QueryKey[];
}

export function Act(props: ActProps) {
  const { opened, onClose, title, wide = false } = props;
  return (
    <Modal opened={opened} onClose={onClose} title={title} size={wide ? 1000 : 'md'}>
      {opened && <ActForm {...props} />}
    </Modal>
  );
}

/** The button of a change, with the dialog that it opens. */
export function ActButton({ look, ...act }: Omit<ActProps, 'opened' | 'onClose'> & { readonly look?: ButtonProps }) {
  const [opened, setOpened] = useState(false);
  return (
    <>
      <Button variant="default" size="xs" {...look} onClick={() => setOpened(true)}>
        {act.action}
      </Button>
      <Act {...act} opened={opened} onClose={() => setOpened(false)} />
    </>
  );
}

function ActForm(props: ActProps) {
  const { onClose, text, action, danger = false, children, missing = false, withReason = true, act } = props;
  const { t } = useTranslation();
  const client = useQueryClient();
  const [reason, setReason] = useState('');
  const [tried, setTried] = useState(false);
  const { busy, problem, run } = useWork((error) => error);
  const once = useRef(newAttempt());
  const noReason = withReason && reason.trim() === '';
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (noReason || missing) return;
    await run(async () => {
      const done = await act(reason.trim(), once.current);
      if (done !== undefined) notifications.show({ message: done, color: 'teal' });
      for (const queryKey of props.stale ?? []) void askAgain(client, queryKey);
      onClose();
    });
  };
  return (
    <form onSubmit={(event) => void submit(event)} noValidate>
      <Stack gap="sm">
        {text !== undefined && (
          <Text fz="sm" component="div">
            {text}
          </Text>
        )}
        {children}
        {withReason && (
          <Textarea
            label={t('operator.ask.reasonLabel')}
            description={t('operator.ask.reasonHint')}
            autosize
            minRows={2}
            maxLength={500}
            required
            data-autofocus={children === undefined || undefined}
            value={reason}
            error={tried && noReason ? t('operator.ask.reasonMissing') : undefined}
            onChange={({ currentTarget }) => setReason(currentTarget.value)}
          />
        )}
        {problem !== undefined && <ErrorState error={problem} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {t('shell.cancel')}
          </Button>
          <Button type="submit" color={danger ? 'red' : undefined} loading={busy}>
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
