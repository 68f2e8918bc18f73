/** Pictures that go with a request: chosen, shown small, and taken away again. They are kept as data URLs. */
import { ActionIcon, FileButton, Group, Text } from '@mantine/core';
import { IconPhotoPlus } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';

/** The largest image that vendors accept, in bytes before Base64. */
const mostImageBytes = 5_000_000;

/** The images, and a way to add those of files. */
export function useImages(most: number) {
  const [all, setAll] = useState<readonly string[]>([]);
  const [tooLarge, setTooLarge] = useState(false);
  const images = all.slice(0, most);
  const attach = async (files: readonly File[]) => {
    const fitting = files.filter(({ size }) => size <= mostImageBytes);
    setTooLarge(fitting.length < files.length);
    const read = await Promise.all(fitting.slice(0, most).map(dataUrlOf));
    setAll((before) => [...new Set([...before, ...read])].slice(0, most));
  };
  return { images, setImages: setAll, attach, tooLarge };
}

interface AttachedProps {
  readonly images: readonly string[];
  readonly onChange: (images: readonly string[]) => void;
}

/** A click removes an image. */
export function Attached({ images, onChange }: AttachedProps) {
  const { t } = useTranslation();
  if (images.length === 0) return null;
  return (
    <Group gap="xs">
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

export function AddImage({ isFull, onFiles }: AddImageProps) {
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

interface ImageFieldProps {
  readonly of: ReturnType<typeof useImages>;
  readonly most: number;
  readonly label: string;
  readonly hint?: string;
}

/** A field of a form for them. */
export function ImageField({ of: { images, setImages, attach, tooLarge }, most, label, hint }: ImageFieldProps) {
  const { t } = useTranslation();
  return (
    <fieldset className="bare-fieldset">
      <Text component="legend" fz="sm" fw={500}>
        {label}
      </Text>
      {hint !== undefined && (
        <Text fz="xs" c="dimmed" mb={6}>
          {hint}
        </Text>
      )}
      <Group gap="xs">
        <Attached images={images} onChange={setImages} />
        <AddImage isFull={images.length >= most} onFiles={(files) => void attach(files)} />
      </Group>
      {tooLarge && (
        <Text fz="xs" className="bad" mt={4} role="alert">
          {t('client.playground.imageTooLarge')}
        </Text>
      )}
    </fieldset>
  );
}

const dataUrlOf = (file: File): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error ?? new Error('The file could not be read.'));
    reader.readAsDataURL(file);
  });
