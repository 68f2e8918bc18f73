/** Where the next question is written, with images beside it. */
import { ActionIcon, Box, Button, FileButton, Group, Text, Textarea } from '@mantine/core';
import { IconPhotoPlus, IconPlayerStopFilled, IconSend } from '@tabler/icons-react';
import { type KeyboardEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';

const mostImages = 4;
/** The largest image that vendors accept, in bytes before Base64. */
const mostImageBytes = 5_000_000;

interface AskProps {
  /** Whether there is a key and a model. */
  readonly ready: boolean;
  readonly busy: boolean;
  readonly withImages: boolean;
  readonly isEmpty: boolean;
  readonly onAsk: (question: string, images: readonly string[]) => void;
  readonly onStop: () => void;
  readonly onReset: () => void;
}

export function Ask({ ready, busy, withImages, isEmpty, onAsk, onStop, onReset }: AskProps) {
  const { t } = useTranslation();
  const [draft, setDraft] = useState('');
  const [images, setImages] = useState<readonly string[]>([]);
  const [tooLarge, setTooLarge] = useState(false);
  const sendable = ready && draft.trim() !== '' && !busy;
  const send = () => {
    if (!sendable) return;
    onAsk(draft.trim(), withImages ? images : []);
    setDraft('');
    setImages([]);
  };
  const attach = async (files: readonly File[]) => {
    const fitting = files.filter(({ size }) => size <= mostImageBytes);
    setTooLarge(fitting.length < files.length);
    const read = await Promise.all(fitting.slice(0, mostImages).map(dataUrlOf));
    setImages((before) => [...new Set([...before, ...read])].slice(0, mostImages));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send();
  };
  return (
    <Box className="ask">
      {withImages && <Attached images={images} onChange={setImages} />}
      <Textarea
        aria-label={t('client.playground.message')}
        placeholder={t('client.playground.placeholder')}
        autosize
        minRows={2}
        maxRows={10}
        value={draft}
        error={tooLarge ? t('client.playground.imageTooLarge') : undefined}
        onChange={({ currentTarget }) => setDraft(currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <Group justify="space-between" mt="xs">
        <Group gap="xs">
          {withImages && <AddImage isFull={images.length >= mostImages} onFiles={(files) => void attach(files)} />}
          {isEmpty ? (
            <Text fz="xs" c="dimmed">
              {ready ? '' : t('client.playground.keyMissing')}
            </Text>
          ) : (
            <Button variant="subtle" color="gray" size="xs" onClick={onReset}>
              {t('client.playground.again')}
            </Button>
          )}
        </Group>
        {busy ? (
          <Button variant="default" leftSection={<IconPlayerStopFilled size={14} />} onClick={onStop}>
            {t('client.playground.stop')}
          </Button>
        ) : (
          <Button leftSection={<IconSend size={15} />} onClick={send} disabled={!sendable}>
            {t('client.playground.send')}
          </Button>
        )}
      </Group>
    </Box>
  );
}

interface AttachedProps {
  readonly images: readonly string[];
  readonly onChange: (images: readonly string[]) => void;
}

/** A click removes an image. */
function Attached({ images, onChange }: AttachedProps) {
  const { t } = useTranslation();
  return (
    <Group gap="xs" mb={images.length === 0 ? 0 : 'xs'}>
      {images.map((image) => (
        <button
          key={image}
          type="button"
          className="attached"
          title={t('client.playground.dropImage')}
          onClick={() => onChange(images.filter((one) => one !== image))}
        >
          <img src={image} alt={t('client.playground.dropImage')} />
        </button>
      ))}
    </Group>
  );
}

interface AddImageProps {
  readonly isFull: boolean;
  readonly onFiles: (files: readonly File[]) => void;
}

function AddImage({ isFull, onFiles }: AddImageProps) {
  const { t } = useTranslation();
  return (
    <FileButton multiple accept="image/png,image/jpeg,image/webp,image/gif" onChange={onFiles}>
      {(props) => (
        <ActionIcon
          {...props}
          variant="default"
          size="lg"
          aria-label={t('client.playground.addImage')}
          title={t('client.playground.addImage')}
          disabled={isFull}
        >
          <IconPhotoPlus size={16} />
        </ActionIcon>
      )}
    </FileButton>
  );
}

const dataUrlOf = (file: File): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error ?? new Error('The file could not be read.'));
    reader.readAsDataURL(file);
  });
